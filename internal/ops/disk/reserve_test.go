package disk

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDiskReserve checks the size of the reserve file while the server runs, and after it has
// stopped. test/e2e/faults tests a full disk.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	const atStop = 2 << 20
	dir := t.TempDir()
	size := func(when string, want int64) {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, reserveFile))
		if err != nil || info.Size() != want {
			t.Errorf("%s: got %v, %v, want a file of %d bytes", when, info, err, want)
		}
	}
	for range 2 {
		r := OpenReserve(dir, atStop)
		if err := r.Maintain(); err != nil {
			t.Fatal(err)
		}
		size("running", r.size)
		if !r.HasSpace() {
			t.Error("HasSpace = false, want true")
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		size("stopped", r.size+atStop)
	}
	// Without Maintain, the directory may belong to another process and is not changed.
	other := OpenReserve(dir, atStop)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	size("not owned", other.size+atStop)
}

// TestReserveIsRemovedOnAFullDisk checks the decisions of the reserve. The test pretends that the
// disk is small or large by changing the size of the reserve.
func TestReserveIsRemovedOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, reserveFile)
	r := OpenReserve(dir, 0)
	r.SetLogger(slog.New(slog.DiscardHandler))
	if r.size == 0 {
		t.Skip("file system has no size")
	}
	normal := r.size
	r.check()
	if _, err := os.Stat(path); err != nil || !r.HasSpace() {
		t.Fatalf("enough space: got file %v, space %v; want a file and space", err, r.HasSpace())
	}
	_, free, err := Space(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.size = 4 * free // much more than is free
	r.check()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || r.HasSpace() {
		t.Errorf("full disk: got file %v, space %v; want no file and no space", err, r.HasSpace())
	}
	r.size = free // enough for a start, but not for the file
	r.check()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || r.HasSpace() {
		t.Errorf("nearly full disk: got file %v, space %v; want no file and no space", err, r.HasSpace())
	}
	r.size = normal
	r.check()
	if _, err := os.Stat(path); err != nil || !r.HasSpace() {
		t.Errorf("space again: got file %v, space %v; want a file and space", err, r.HasSpace())
	}
}

// TestMaintainReleasesSpaceForTheStart checks that Maintain returns the space that Close has
// reserved, also if the file is larger than this version would make it.
func TestMaintainReleasesSpaceForTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, reserveFile)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 64<<20); err != nil {
		t.Fatal(err)
	}
	r := OpenReserve(dir, 0)
	if err := r.Maintain(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if info, err := os.Stat(path); err != nil || info.Size() != r.size {
		t.Errorf("got %v, %v; want a file of %d bytes", info, err, r.size)
	}
}

// TestStoresAreClaimed checks that the space of etcd's store is allocated ahead of its end once
// the stores are open, and not before.
func TestStoresAreClaimed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "etcd", "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store, []byte("pages"), 0o600); err != nil {
		t.Fatal(err)
	}
	allocated := func() int64 {
		t.Helper()
		var info syscall.Stat_t
		if err := syscall.Stat(store, &info); err != nil {
			t.Fatal(err)
		}
		if info.Size != 5 {
			t.Errorf("store has %d bytes, want its size unchanged", info.Size)
		}
		return info.Blocks * 512
	}
	r := OpenReserve(dir, 0)
	r.SetLogger(slog.New(slog.DiscardHandler))
	r.check()
	if got := allocated(); got >= storeAhead {
		t.Errorf("before StoresOpen: %d bytes are allocated, want fewer than %d", got, storeAhead)
	}
	r.StoresOpen()
	r.check()
	if r.size == 0 {
		t.Skip("file system does not support fallocate")
	}
	if got := allocated(); got < storeAhead {
		t.Errorf("after StoresOpen: %d bytes are allocated, want at least %d", got, storeAhead)
	}
}

func TestSpace(t *testing.T) {
	t.Parallel()
	total, free, err := Space(t.TempDir())
	if err != nil || total <= 0 || free < 0 || free > total {
		t.Errorf("got %d bytes, %d free, %v; want a size and at most that much free space", total, free, err)
	}
	if _, _, err := Space(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory that does not exist: got %v, want %v", err, os.ErrNotExist)
	}
}
