package etcd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSegmentFor(t *testing.T) {
	t.Parallel()
	for available, want := range map[int64]int64{0: leastSegment, 3 << 20: 3 << 19, 16 << 20: 8 << 20, 1 << 40: Segment} {
		if got := segmentFor(available); got != want {
			t.Errorf("with %d bytes free: got %d, want %d", available, got, want)
		}
	}
}

// TestUnusedSegments: what a member that was killed had in advance is given back,
// and what it wrote is not touched.
func TestUnusedSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := filepath.Join(dir, "member", "wal")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"0.tmp": false, "1.tmp": false, "0000000000000000-0000000000000000.wal": true} {
		path := filepath.Join(logs, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := claimSegment(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: got %v, want it to stay: %v", name, err, stays)
		}
	}
}
