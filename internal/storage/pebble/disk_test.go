package pebble

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDisk replaces and removes directories, and continues files, on a file system that forgets what was not
// synced.
func TestDisk(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	disk := Options{FS: mem}.Disk()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(d Disk, path string) string {
		t.Helper()
		f, err := d.Open(path)
		must(err)
		text, err := io.ReadAll(f)
		must(errors.Join(err, f.Close()))
		return string(text)
	}
	add := func(path, text string, limit int64) {
		t.Helper()
		must(disk.Continue(path, limit, func(out io.Writer, _ int64) error {
			_, err := io.WriteString(out, text)
			return err
		}))
	}
	for _, dir := range []string{"one", "two", "one.old"} {
		must(disk.MakeDir(dir))
	}
	add("one/file", "old", 10)
	add("two/file", "ne", 10)
	add("two/file", "w", 10)
	add("two/short", "too long", 10)
	add("two/short", "text", 5) // larger than the limit, so it starts again
	must(errors.Join(disk.SyncDir("one"), disk.SyncDir("two"), disk.SyncDir("")))
	must(disk.ReplaceStore("two", "one"))
	after := Options{FS: mem.CrashClone(vfs.CrashCloneCfg{
		RNG: rand.New(rand.NewPCG(1, 1)), //nolint:gosec // a test
	})}.Disk()
	for _, d := range []Disk{disk, after} {
		if got := read(d, "one/file") + read(d, "one/short"); got != "newtext" {
			t.Errorf("got %q, want %q", got, "newtext")
		}
	}
	if err := disk.ReplaceStore("two", "one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("replacing with a directory that does not exist: got %v, want %v", err, fs.ErrNotExist)
	}
	if got := read(disk, "one.old/file"); got != "new" {
		t.Errorf("got %q, want the store that was there", got)
	}
	must(errors.Join(disk.Rename("one.old", "one"), disk.RemoveStore("one"), disk.RemoveStore("one")))
	if names, err := disk.List(""); err != nil || slices.Contains(names, "one") {
		t.Errorf("got %v, %v, want nothing", names, err)
	}
}
