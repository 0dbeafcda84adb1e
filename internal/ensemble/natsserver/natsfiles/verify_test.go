package natsfiles_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natsfiles"
	"freshet/internal/ensemble/natsserver/natstest"
)

// The log of the stream has several blocks of 8 MiB, the last of them with few messages.
const (
	messages     = 300
	messageBytes = 100_000
)

// writtenFiles returns the files of a server after a stop in good order. The logs of its Raft groups do not
// have their first entries any more, so that nothing but the snapshots has them.
func writtenFiles(t *testing.T) string {
	t.Helper()
	c := natstest.New(t, 3, natstest.Unsafe)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	js, err := jetstream.New(c.Connect(0))
	if err != nil {
		t.Fatal(err)
	}
	c.CreateStream(ctx, js, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3, DenyDelete: true})
	for range messages {
		m := &nats.Msg{Subject: "s", Header: nats.Header{"Key": []string{"value"}}, Data: make([]byte, messageBytes)}
		_, err := js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(1000),
			jetstream.WithRetryWait(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
	}
	const stopped = 2
	current := func() bool { return c.Server(stopped).Current() == nil }
	await(t, "server that is current", current)
	c.Stop(stopped)
	// A server that is stopped while it writes a snapshot leaves the log as it is. It compacts it at the
	// next snapshot, for which it needs entries.
	for range 20 {
		if isCompacted(t, c.Files(stopped), "S-*") && isCompacted(t, c.Files(stopped), "_meta_") {
			return c.Files(stopped)
		}
		c.Start(stopped)
		await(t, "server that is current", current)
		c.CreateStream(ctx, js, jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}, Replicas: 3})
		if err := js.DeleteStream(ctx, "OTHER"); err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(ctx, "s", []byte("x"), jetstream.WithRetryAttempts(1000)); err != nil {
			t.Fatal(err)
		}
		await(t, "server that is current", current)
		c.Stop(stopped)
	}
	t.Fatal("got logs of groups with all entries after 20 stops, want compacted ones")
	return ""
}

// isCompacted reports whether the log of a group has lost its first entry to a snapshot: its first block is
// gone, or the index says so.
func isCompacted(t *testing.T, dir, group string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "$SYS", "_js_", group, "msgs"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got groups %q and error %v, want one", found, err)
	}
	if _, err := os.Stat(filepath.Join(found[0], "1.blk")); os.IsNotExist(err) {
		return true
	}
	index, err := os.ReadFile(filepath.Join(found[0], "index.db"))
	if err != nil {
		return false
	}
	first, index := uint64(0), index[2:]
	for range 3 { // messages, bytes, first sequence
		value, n := binary.Uvarint(index)
		first, index = value, index[n:]
	}
	return first > 1
}

// TestVerify checks what verification finds in the files of a server that were changed.
func TestVerify(t *testing.T) {
	written := writtenFiles(t)
	const (
		blocks = `$G/streams/S/msgs/`
		group  = `$SYS/_js_/S-*/`
		meta   = `$SYS/_js_/_meta_/`
	)
	edit := func(name string, change func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			found, err := filepath.Glob(filepath.Join(dir, name))
			if err != nil || len(found) == 0 {
				t.Fatalf("got no file %s and error %v, want one", name, err)
			}
			data, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			if data = change(data); data == nil {
				err = os.Remove(found[0])
			} else {
				err = os.WriteFile(found[0], data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	cut := func(n int) func([]byte) []byte { return func(data []byte) []byte { return data[:len(data)-n] } }
	flip := func(at int) func([]byte) []byte {
		return func(data []byte) []byte {
			data[(at+len(data))%len(data)] ^= 1
			return data
		}
	}
	remove := func([]byte) []byte { return nil }
	add := func(tail string) func([]byte) []byte {
		return func(data []byte) []byte { return append(data, tail...) }
	}
	for name, c := range map[string]struct {
		change  func(t *testing.T, dir string)
		stopped bool
		want    string // part of the finding; "" for none
	}{
		"nothing":                    {change: func(*testing.T, string) {}, stopped: true},
		"torn last record":           {change: edit(blocks+"4.blk", cut(10))},
		"torn header":                {change: edit(blocks+"4.blk", add("\x10\x20"))},
		"unwritten tail":             {change: edit(blocks+"4.blk", add(strings.Repeat("\x00", 5000)))},
		"torn after a stop":          {edit(blocks+"4.blk", cut(10)), true, "ends in the middle of a record"},
		"full block cut":             {edit(blocks+"2.blk", cut(10)), false, "ends in the middle of a record"},
		"flip in the last block":     {edit(blocks+"4.blk", flip(50)), false, "does not match its checksum"},
		"flip in the last record":    {edit(blocks+"4.blk", flip(-50)), false, "does not match its checksum"},
		"flip in a length":           {edit(blocks+"4.blk", flip(2)), false, "4.blk"},
		"flip in a full block":       {edit(blocks+"1.blk", flip(5000)), false, "does not match its checksum"},
		"block missing":              {edit(blocks+"2.blk", remove), false, "are missing before this block"},
		"first block missing":        {edit(blocks+"1.blk", remove), false, "blocks are missing"},
		"index flipped":              {edit(blocks+"index.db", flip(5)), false, "index does not match"},
		"index missing":              {change: edit(blocks+"index.db", remove)},
		"description flipped":        {edit(`$G/streams/S/meta.inf`, flip(30)), false, "meta.inf"},
		"description missing":        {edit(`$G/streams/S/meta.inf`, remove), false, "file is missing"},
		"snapshot flipped":           {edit(group+"snapshots/*", flip(10)), false, "snapshot does not match"},
		"snapshot missing":           {edit(group+"snapshots/*", remove), false, "snapshot or blocks are missing"},
		"snapshot of meta missing":   {edit(meta+"snapshots/*", remove), false, "snapshot or blocks are missing"},
		"peers flipped":              {edit(meta+"peers.idx", flip(4)), false, "is no list of servers"},
		"peers missing":              {edit(meta+"peers.idx", remove), false, "file is missing"},
		"vote cut":                   {edit(meta+"tav.idx", cut(5)), false, "is no term and vote"},
		"committed entry flipped":    {edit(meta+"commit.idx", flip(1)), false, "does not match its checksum"},
		"stream without its records": {removeAll(blocks), false, "directory with the messages is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(written)); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			report, err := natsfiles.Verify(t.Context(), dir, natsfiles.Options{Stopped: c.stopped})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(report.Findings) > 0 {
					t.Errorf("got %v, want no damage", report.Findings)
				}
				return
			}
			for _, f := range report.Findings {
				if strings.Contains(f.Error(), c.want) {
					return
				}
			}
			t.Errorf("got %v, want %q", report.Findings, c.want)
		})
	}
	t.Run("every byte of a stream", func(t *testing.T) { everyByte(t, written, `$G/streams/S`) })
	t.Run("every byte of a Raft log", func(t *testing.T) { everyByte(t, written, `$SYS/_js_/_meta_`) })
}

// everyByte changes the bytes of the first records in the last block of a log, one at a time, and wants each change
// to be found.
func everyByte(t *testing.T, written, part string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(written, part))); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, part, "msgs", "*.blk"))
	if err != nil || len(found) == 0 {
		t.Fatalf("got no blocks and error %v, want one", err)
	}
	file := found[len(found)-1]
	for _, other := range found[:len(found)-1] { // they would take time
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := range min(len(data), 100) {
		data[at] ^= 1
		err := os.WriteFile(file, data, 0o600)
		data[at] ^= 1
		if err != nil {
			t.Fatal(err)
		}
		report, err := natsfiles.Verify(t.Context(), dir, natsfiles.Options{Stopped: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Damaged()) == 0 {
			t.Errorf("byte %d of %s changed: got no damage, want one", at, filepath.Base(file))
		}
	}
}

func removeAll(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
