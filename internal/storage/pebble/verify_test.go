package pebble

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/cleanclose"
	"freshet/internal/storage/engine"
)

// openCopy opens a store with an external log.
func openCopy(t *testing.T, dir string) *Store {
	t.Helper()
	st, err := OpenStore(dir, Options{MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatalf("open: got error %v, want none", err)
	}
	return st
}

// fillCopy applies batches up to a position and flushes them.
func fillCopy(t *testing.T, st *Store, position string) {
	t.Helper()
	b := st.s.db.NewBatch()
	for i := range 100 {
		key := fmt.Appendf([]byte{keyRecord}, "%08d", i)
		if err := b.Set(key, addChecksum(key, []byte(strings.Repeat(position, 50))), cdb.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Apply(b.Repr(), []byte(position)); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(); err != nil {
		t.Fatal(err)
	}
}

func closeCopy(t *testing.T, st *Store) {
	t.Helper()
	if err := st.Close(); err != nil {
		t.Fatalf("close: got error %v, want none", err)
	}
}

// verifyAll verifies the metadata and all tables of an open store.
func verifyAll(t *testing.T, st *Store) error {
	t.Helper()
	tables, err := st.Tables()
	if err != nil {
		t.Fatal(err)
	}
	err = st.VerifyMetadata()
	for _, table := range tables {
		err = errors.Join(err, st.VerifyTable(t.Context(), table))
	}
	return err
}

func flipIn(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/3] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func oneTable(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(found) == 0 {
		t.Fatalf("got tables %v and error %v, want one", found, err)
	}
	return found[0]
}

// TestCopyNeedsVerification checks when a copy counts as verified: when it is new, after a clean close of
// a verified store, and not when a table was written since or the store was not closed.
func TestCopyNeedsVerification(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "copy")
	st := openCopy(t, dir)
	if !st.Verified() {
		t.Error("got a new store that needs verification, want none")
	}
	fillCopy(t, st, "1")
	closeCopy(t, st)
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(oneTable(t, dir), past, past); err != nil { // independent of the clock's resolution
		t.Fatal(err)
	}
	if st = openCopy(t, dir); !st.Verified() {
		t.Error("got a store that needs verification after a clean close, want none")
	}
	closeCopy(t, st)
	flipIn(t, oneTable(t, dir)) // changes the time of the table
	st = openCopy(t, dir)
	if st.Verified() {
		t.Error("got a verified store although a table has changed, want one that needs verification")
	}
	closeCopy(t, st)
	if _, err := os.Stat(filepath.Join(dir, cleanclose.Name)); !os.IsNotExist(err) {
		t.Errorf("got %v, want no record of a clean close of an unverified store", err)
	}
	st = openCopy(t, dir)
	if err := verifyAll(t, st); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("got error %v, want ErrCorrupt", err)
	}
	select {
	case <-st.Damaged():
	default:
		t.Error("got no report of the damage, want one")
	}
	if got := st.Damage(); got == nil || got.File != filepath.Base(oneTable(t, dir)) {
		t.Errorf("got damage %v, want the table", got)
	}
	closeCopy(t, st)
}

// TestVerifyCopy verifies an intact copy while compactions replace its tables, and closed ones with a damaged
// file of every kind.
func TestVerifyCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := openCopy(t, filepath.Join(dir, "copy"))
	for i := range 20 {
		fillCopy(t, st, fmt.Sprint(i))
		if err := verifyAll(t, st); err != nil {
			t.Fatalf("got error %v, want none", err)
		}
	}
	for _, prefix := range []string{"", "MANIFEST-", "OPTIONS-", "marker.manifest.", "marker.format-version."} {
		to := filepath.Join(dir, "damaged-"+prefix)
		if err := st.Checkpoint(to); err != nil {
			t.Fatal(err)
		}
		if at, err := (Options{}).Disk().VerifyClosed(t.Context(), to); err != nil || string(at) != "19" {
			t.Fatalf("got position %q and error %v, want 19 and none", at, err)
		}
		found, err := filepath.Glob(filepath.Join(to, prefix+"*"))
		if prefix == "" {
			found, err = filepath.Glob(filepath.Join(to, "*.sst"))
		}
		if err != nil || len(found) == 0 {
			t.Fatalf("got files %v and error %v, want one", found, err)
		}
		if err := os.Remove(found[0]); err != nil { // not flipped: it is a link to a table of the store
			t.Fatal(err)
		}
		var damage *FileDamage
		_, err = (Options{}).Disk().VerifyClosed(t.Context(), to)
		if !errors.As(err, &damage) || !errors.Is(err, engine.ErrCorrupt) {
			t.Errorf("got error %v without %s, want damage", err, filepath.Base(found[0]))
		}
	}
	closeCopy(t, st)
}
