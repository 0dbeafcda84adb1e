package spoil_test

import (
	"bytes"
	"errors"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"freshet/test/ensemble/spoil"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// write writes a file of a class below dir: content, followed by preallocated space.
func write(t *testing.T, dir, name string, content []byte, space int) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.Clone(content), make([]byte, space)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func class(t *testing.T, name string) spoil.Class {
	t.Helper()
	for _, c := range spoil.Classes() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no class %q", name)
	return spoil.Class{}
}

// TestOperations checks what each operation does to a file, and that a seed repeats it.
func TestOperations(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte{0xa5}, 10_000)
	const space = 3000
	damaged := func(t *testing.T, operation spoil.Operation, seed uint64) (after []byte, done spoil.Done) {
		t.Helper()
		dir := t.TempDir()
		path := write(t, dir, "etcd/member/wal/1.wal", content, space)
		done, err := spoil.Damage(dir, class(t, "etcd-log"), operation, random(seed), nil)
		if err != nil {
			t.Fatal(err)
		}
		after, err = os.ReadFile(path)
		if err != nil && operation != spoil.Delete {
			t.Fatal(err)
		}
		return after, done
	}
	for _, operation := range spoil.Operations() {
		t.Run(string(operation), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				after, done := damaged(t, operation, seed)
				again, same := damaged(t, operation, seed)
				if !bytes.Equal(after, again) || done != same {
					t.Errorf("seed %d twice: got %s and %s, want the same", seed, done, same)
				}
				flipped, zeroed := 0, 0
				for i := range min(len(after), len(content)) {
					flipped += bits.OnesCount8(after[i] ^ content[i])
					if after[i] == 0 {
						zeroed++
					}
				}
				switch got := len(after); operation {
				case spoil.Flip:
					if got != len(content)+space || flipped != 1 {
						t.Errorf("got %d bytes with %d bits changed, want %d with 1", got, flipped, len(content)+space)
					}
				case spoil.CutHalf:
					if got != len(content)/2 || flipped != 0 {
						t.Errorf("got %d bytes with %d bits changed, want %d with none", got, flipped, len(content)/2)
					}
				case spoil.CutEnd:
					if got != len(content)-100 || flipped != 0 {
						t.Errorf("got %d bytes with %d bits changed, want %d with none", got, flipped, len(content)-100)
					}
				case spoil.Zero:
					if got != len(content)+space || zeroed == 0 || zeroed > 4096 {
						t.Errorf("got %d bytes with %d zeroed, want %d with up to 4096", got, zeroed,
							len(content)+space)
					}
				case spoil.Delete:
					if got != 0 {
						t.Errorf("got %d bytes, want no file", got)
					}
				}
			}
		})
	}
}

// TestAbsent checks that a class without a file to damage is reported, and that empty files can
// only be deleted.
func TestAbsent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	marker := class(t, "marker")
	if _, err := spoil.Damage(dir, marker, spoil.Delete, random(1), nil); !errors.Is(err, spoil.ErrAbsent) {
		t.Errorf("no file: got %v, want %v", err, spoil.ErrAbsent)
	}
	write(t, dir, "clusters/x/shard-001/marker.manifest.000001.MANIFEST-000001", nil, 0)
	if _, err := spoil.Damage(dir, marker, spoil.Flip, random(1), nil); !errors.Is(err, spoil.ErrAbsent) {
		t.Errorf("empty file: got %v, want %v", err, spoil.ErrAbsent)
	}
	if _, err := spoil.Damage(dir, marker, spoil.Delete, random(1), nil); err != nil {
		t.Errorf("deleting an empty file: got %v, want no error", err)
	}
}

// TestClasses checks that no file belongs to two classes.
func TestClasses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := []string{
		"log/jetstream/$G/streams/S_u_0/msgs/1.blk", "log/jetstream/$G/streams/J_u/msgs/1.blk",
		"log/jetstream/$G/streams/S_u_0/msgs/index.db", "log/jetstream/$G/streams/S_u_0/meta.inf",
		"log/jetstream/$SYS/_js_/S-R3F-x/msgs/2.blk", "log/jetstream/$SYS/_js_/S-R3F-x/snapshots/snap.1.1",
		"log/jetstream/$SYS/_js_/_meta_/msgs/3.blk", "log/jetstream/$SYS/_js_/_meta_/tav.idx",
		"etcd/member/snap/db", "etcd/member/wal/0.wal", "clusters/u/shard-000/000004.sst",
		"clusters/u/shard-000/000002.log", "clusters/u/shard-000/MANIFEST-000001", "clusters/u/shard-000/CLOSED",
		"clusters/u/shard-000-checkpoints/id/000004.sst", "clusters/u/journal-copies/catalogue.copy", "members/ca.crt",
		"FORMAT", "admin.token",
	}
	for _, name := range files {
		write(t, dir, name, []byte("x"), 0)
	}
	owner := map[string]string{}
	for _, c := range spoil.Classes() {
		for _, file := range c.Find(dir) {
			if owner[file] != "" {
				t.Errorf("%s: in classes %s and %s, want one", file, owner[file], c.Name)
			}
			owner[file] = c.Name
		}
	}
	if len(owner) != len(files) {
		t.Errorf("got %d of %d files in a class: %v", len(owner), len(files), owner)
	}
}

// TestLikely checks that likely files are damaged first, and others if there are no likely ones.
func TestLikely(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"1.wal", "2.wal", "3.wal"} {
		write(t, dir, "etcd/member/wal/"+name, []byte("x"), 0)
	}
	second := func(file string) bool { return filepath.Base(file) == "2.wal" }
	for i, want := range []bool{true, false, false} {
		done, err := spoil.Damage(dir, class(t, "etcd-log"), spoil.Delete, random(uint64(i)), second)
		if err != nil || second(done.File) != want {
			t.Errorf("file %d: got %s, %v, want 2.wal first", i, done, err)
		}
	}
}
