package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, elem ...string) {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestUndo checks that a start that failed leaves what it found: nothing, an empty directory, or the files
// of an earlier start.
func TestUndo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before []string // files in the directory; nil for no directory
		want   []string // in the parent of the data directory, then in the directory
	}{
		"no directory":    {nil, nil},
		"empty directory": {[]string{}, []string{"data"}},
		"earlier start":   {[]string{"LOCK", "FORMAT", "etcd/member/wal"}, []string{"data", "FORMAT", "LOCK", "etcd"}},
		"files of others": {[]string{"notes"}, []string{"data", "notes"}},
	} {
		parent := filepath.Join(t.TempDir(), "new")
		dir := filepath.Join(parent, "data")
		if tc.before != nil {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range tc.before {
			write(t, dir, file)
		}
		start := NewStart(dir)
		lock, err := Acquire(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := start.Locked(); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "FORMAT")
		write(t, dir, "tls", "ca.crt")
		if err := start.Undo(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if lock.isCurrent(dir) != slices.Contains(tc.want, "LOCK") {
			t.Errorf("%s: the lock's file exists: %v", name, lock.isCurrent(dir))
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
		if tc.want == nil {
			if _, err := os.Stat(parent); !os.IsNotExist(err) {
				t.Errorf("%s: got %v for the parent, want that it does not exist", name, err)
			}
			continue
		}
		if got := append(list(t, parent), list(t, dir)...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
