package pebble

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/journalcopy"
)

// TestSeedJournal copies journals of another store, with a snapshot, records, or both: the
// copies are equal, and can be appended to and reopened.
func TestSeedJournal(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	from, err := Open(t.TempDir(), Options{})
	must(t, err)
	to, err := Open(dir, Options{})
	must(t, err)
	sums := map[string][32]byte{}
	for _, c := range []struct {
		name               string
		records, snapshots uint64
	}{{"empty", 0, 0}, {"records", 5, 0}, {"snapshot", 5, 5}, {"both", 50, 20}} {
		j, err := from.Journal(ctx, c.name)
		must(t, err)
		for i := range c.records {
			_, err := j.Append(ctx, i, fmt.Appendf(nil, "record %d", i+1))
			must(t, err)
		}
		if c.snapshots > 0 {
			must(t, j.SaveSnapshot(ctx, c.snapshots,
				func(w io.Writer) error { _, err := io.WriteString(w, "state"); return err }))
		}
		must(t, to.SeedJournal(ctx, c.name, j))
		sums[c.name], err = journalcopy.Sum(ctx, j)
		must(t, err)
		if err := to.SeedJournal(ctx, c.name, j); c.records > 0 && !errors.Is(err, engine.ErrConflict) {
			t.Errorf("%s: second copy: got error %v, want %v", c.name, err, engine.ErrConflict)
		}
	}
	must(t, from.Close())
	for range 2 {
		for name, want := range sums {
			j, err := to.Journal(ctx, name)
			must(t, err)
			if got, err := journalcopy.Sum(ctx, j); err != nil || got != want {
				t.Errorf("%s: got %x, %v, want %x", name, got, err, want)
			}
		}
		must(t, to.Close())
		to, err = Open(dir, Options{})
		must(t, err)
	}
	j, err := to.Journal(ctx, "snapshot")
	must(t, err)
	if last, err := j.Append(ctx, 5, []byte("more")); err != nil || last != 6 {
		t.Errorf("append after a snapshot: got position %d, %v; want 6", last, err)
	}
	must(t, to.Close())
}
