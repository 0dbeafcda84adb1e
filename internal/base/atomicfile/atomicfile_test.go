package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"freshet/internal/base/atomicfile"
)

func TestReplaceAndCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, atomicfile.Create(path, []byte("one")))
	if err := atomicfile.Create(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create of a file that exists: got %v, want %v", err, fs.ErrExist)
	}
	check(t, path, "one", 0o600)
	must(t, atomicfile.Replace(path, []byte("two")))
	check(t, path, "two", 0o600)
	must(t, atomicfile.Replace(path, []byte("three"), func(f *os.File) error { return f.Chmod(0o640) }))
	check(t, path, "three", 0o640)
	failure := errors.New("wrong owner")
	if err := atomicfile.Replace(path, nil, func(*os.File) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	check(t, path, "three", 0o640)
	checkNames(t, dir, "file") // no temporary file is left
}

func TestWriteNewAndCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	must(t, atomicfile.WriteNewBytes(one, []byte("text")))
	must(t, atomicfile.Copy(one, two))
	check(t, two, "text", 0o600)
	for _, err := range []error{atomicfile.WriteNewBytes(one, nil), atomicfile.Copy(two, one)} {
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("got %v, want %v", err, fs.ErrExist)
		}
	}
	check(t, one, "text", 0o600)
}

func TestRemoveDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	must(t, atomicfile.RemoveDir(one, one+".old")) // does not exist
	must(t, errors.Join(os.Mkdir(one, 0o700), atomicfile.WriteNewBytes(filepath.Join(one, "file"), []byte("text"))))
	must(t, os.Mkdir(one+".old", 0o700)) // left by a crash
	must(t, atomicfile.SyncDirs(dir))
	must(t, atomicfile.RemoveDir(one, one+".old"))
	checkNames(t, dir)
}

func check(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if string(got) != want || info.Mode().Perm() != mode {
		t.Errorf("%s: got %q with mode %o, want %q with %o", path, got, info.Mode().Perm(), want, mode)
	}
}

func checkNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got files %q, want %q", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
