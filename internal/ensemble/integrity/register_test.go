package integrity

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string, o Options) *Register {
	t.Helper()
	r, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRegister checks that a part goes from verified to damaged to healed, that this survives a
// restart, and that repeated damage is one line and one count.
func TestRegister(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var lines bytes.Buffer
	o := Options{Logger: slog.New(slog.NewTextHandler(&lines, nil)), Now: func() time.Time { return now }}
	r := open(t, dir, o)
	r.Verified("shard c/0")
	verified := now
	now = now.Add(time.Hour)
	_, changed := r.Parts()
	for range 3 {
		r.Damaged("shard c/0", "000007.sst", errors.New("block 3: checksum mismatch"))
	}
	select {
	case <-changed:
	default:
		t.Error("got no change after damage, want one")
	}
	if got := strings.Count(lines.String(), "\n"); got != 1 {
		t.Errorf("got %d lines, want 1: %s", got, &lines)
	}
	want := Part{
		Name: "shard c/0", Verified: verified, Damaged: now, File: "000007.sst",
		Problem: "block 3: checksum mismatch", Damages: 1,
	}
	if got := open(t, dir, o).Part("shard c/0"); got != want {
		t.Errorf("got %+v after a restart, want %+v", got, want)
	}
	r.Healed("shard c/0")
	want.Verified, want.Damaged, want.Healed = now, time.Time{}, now
	if got := r.Part("shard c/0"); got != want {
		t.Errorf("got %+v after healing, want %+v", got, want)
	}
	r.Forget("shard c/0")
	if parts, _ := open(t, dir, o).Parts(); len(parts) != 0 {
		t.Errorf("got %+v, want no parts", parts)
	}
}

// TestDamagedRegister begins a new one when its own file is damaged.
func TestDamagedRegister(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, Options{}).Verified("logs")
	if err := os.WriteFile(filepath.Join(dir, partsFile), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if parts, _ := open(t, dir, Options{}).Parts(); len(parts) != 0 {
		t.Errorf("got %+v, want no parts", parts)
	}
}

// TestDamagedBit begins a new register when any bit of its file has flipped, and reads it unchanged
// otherwise.
func TestDamagedBit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, Options{}).Damaged("etcd", "etcd/member/snap/db", errors.New("content differs"))
	path := filepath.Join(dir, partsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts, _, err := Read(dir)
	if err != nil || len(parts) != 1 || parts[0].Name != "etcd" || parts[0].Damaged.IsZero() {
		t.Errorf("got %+v, %v, want the damaged part", parts, err)
	}
	for bit := range len(data) * 8 {
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if parts, _, err := Read(dir); err == nil {
			t.Fatalf("bit %d flipped: got %+v, want an error", bit, parts)
		}
	}
}

// TestLines checks that the line about damage promises a good copy only for parts that are fetched.
func TestLines(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	r := open(t, t.TempDir(), Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	for part, fetched := range map[string]bool{"logs": true, "shard c/0": true, "journal c/j": true, "etcd": false} {
		lines.Reset()
		r.Damaged(part, "", errors.New("damaged"))
		if got := strings.Contains(lines.String(), "fetches a good copy"); got != fetched {
			t.Errorf("%s: got %s, want that it is fetched: %t", part, &lines, fetched)
		}
	}
}

// TestQuarantine keeps damaged files for a day and counts their bytes.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r := open(t, filepath.Join(dir, "integrity"), Options{Now: func() time.Time { return now }})
	shard := filepath.Join(dir, "shard")
	if err := os.Mkdir(shard, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shard, "000007.sst"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("checksum mismatch")
	for range 2 { // the second time nothing is left to move
		if err := r.Quarantine("shard c/0", shard, cause); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(shard); !os.IsNotExist(err) {
		t.Errorf("got %v, want the files gone from their place", err)
	}
	entries := r.Quarantined()
	if len(entries) != 1 {
		t.Fatalf("got %+v, want one entry", entries)
	}
	if e := entries[0]; e.Part != "shard c/0" || e.Problem != cause.Error() || e.From != shard || e.Bytes < 1000 {
		t.Errorf("got %+v, want the part, its problem, its place and its bytes", e)
	}
	now = now.Add(23 * time.Hour)
	r.Expire()
	if got := r.Quarantined(); len(got) != 1 {
		t.Errorf("got %+v after 23 hours, want one entry", got)
	}
	now = now.Add(2 * time.Hour)
	r.Expire()
	if got := r.Quarantined(); len(got) != 0 {
		t.Errorf("got %+v after 25 hours, want none", got)
	}
}

// TestNoRegister checks that a server without a register needs no special case.
func TestNoRegister(t *testing.T) {
	t.Parallel()
	var r *Register
	r.Verified("logs")
	r.Damaged("logs", "", errors.New("damaged"))
	r.Healed("logs")
	r.Forget("logs")
	r.Expire()
	if parts, _ := r.Parts(); parts != nil || r.Part("logs") != (Part{}) || r.Quarantined() != nil {
		t.Errorf("got %+v, want nothing", parts)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Quarantine("logs", path, errors.New("damaged")); err != nil {
		t.Fatal(err)
	}
}
