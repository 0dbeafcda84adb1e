package etcd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestSegmentFor(t *testing.T) {
	t.Parallel()
	for available, want := range map[int64]int64{
		0: minSegment, 3 << 20: 3 << 19, 16 << 20: 8 << 20,
		1 << 40: Segment,
	} {
		if got := segmentSize(available); got != want {
			t.Errorf("with %d bytes free: got %d, want %d", available, got, want)
		}
	}
}

// TestUnusedSegments checks that the segments that a killed member had allocated in advance are
// removed, and that used segments are not.
func TestUnusedSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := filepath.Join(dir, "member", "wal")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"0.tmp": false, "1.tmp": false,
		"0000000000000000-0000000000000000.wal": true,
	} {
		path := filepath.Join(logs, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := reserveSegment(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: got %v, want file kept: %v", name, err, stays)
		}
	}
}

// TestFitSegment checks that a segment with less disk space than its size is shortened when the
// disk has no space for the rest, and that the written data stays.
func TestFitSegment(t *testing.T) {
	t.Parallel()
	const size, written, page = 1 << 20, 40 << 10, 4 << 10
	data := bytes.Repeat([]byte("log "), written/4)
	for name, c := range map[string]struct {
		space         int64
		whole         bool // the whole segment is allocated
		size, missing int64
	}{
		"fully allocated":  {space: 0, whole: true, size: size},
		"enough space":     {space: size, size: size, missing: size - written},
		"some space":       {space: 100 << 10, size: written + 100<<10, missing: 100 << 10},
		"no space":         {space: 0, size: written},
		"less than a page": {space: 1 << 10, size: written + 1<<10, missing: 1 << 10},
	} {
		logs := t.TempDir()
		if missing, err := fitSegment(logs, 0); missing != 0 || err != nil {
			t.Errorf("%s: without a log: got %d, %v; want nothing missing", name, missing, err)
		}
		older := filepath.Join(logs, "0000000000000000-0000000000000000.wal")
		last := filepath.Join(logs, "0000000000000001-0000000000000010.wal")
		for _, path := range []string{older, last} {
			if err := errors.Join(os.WriteFile(path, data, 0o600), os.Truncate(path, size)); err != nil {
				t.Fatal(err)
			}
		}
		if c.whole {
			if err := os.WriteFile(last, append(bytes.Clone(data), make([]byte, size-written)...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		missing, err := fitSegment(logs, c.space)
		if err != nil || missing < c.missing-page || missing > c.missing {
			t.Errorf("%s: got %d bytes missing, %v; want %d", name, missing, err, c.missing)
		}
		got, err := os.ReadFile(last)
		if err != nil || int64(len(got)) < c.size || int64(len(got)) > c.size+page || !bytes.HasPrefix(got, data) ||
			len(bytes.Trim(got[written:], "\x00")) > 0 {
			t.Errorf("%s: got %d bytes, %v; want %d with the written data and zeros", name, len(got), err, c.size)
		}
		if info, err := os.Stat(older); err != nil || info.Size() != size {
			t.Errorf("%s: an older segment: got %v, %v; want it untouched", name, info, err)
		}
	}
}
