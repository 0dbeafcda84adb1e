package journal_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// journalText returns the snapshot and all records of a journal as text.
func journalText(t *testing.T, j engine.Journal) []string {
	t.Helper()
	var all []string
	position, state, err := j.LoadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state != nil {
		text, err := io.ReadAll(state)
		if err != nil {
			t.Fatal(err)
		}
		_ = state.Close()
		all = append(all, fmt.Sprintf("snapshot at %d: %s", position, text))
	}
	_, err = j.Replay(t.Context(), position, func(position uint64, record []byte) error {
		all = append(all, fmt.Sprintf("%d: %s", position, record))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSeed copies journals of a store into streams. The copies have the same snapshot,
// records and positions, a repeated Seed changes nothing, and appends work afterwards.
func TestSeed(t *testing.T) {
	t.Parallel()
	store, err := pebble.Open(t.TempDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	natsCluster := natstest.New(t, 1, natstest.Unsafe)
	to := openJournals(t, natsCluster.Connect(0), 1, "seeded")
	t.Cleanup(to.Close)
	var made []string
	for _, c := range []struct {
		name               string
		records, snapshots uint64
	}{{"empty", 0, 0}, {"records", 5, 0}, {"snapshot", 5, 5}, {"both", 2500, 1200}, {"a name.with=signs", 1, 0}} {
		made = append(made, c.name)
		from, err := store.Journal(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.records {
			if _, err := from.Append(t.Context(), i,
				fmt.Appendf(nil, "record %d %s", i+1, strings.Repeat("x", 1000))); err != nil {
				t.Fatal(err)
			}
		}
		if c.snapshots > 0 {
			err := from.SaveSnapshot(t.Context(), c.snapshots, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "state at %d %s", c.snapshots, strings.Repeat("y", 700_000))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := journalText(t, from)
		for range 2 {
			if err := to.Seed(t.Context(), c.name, from); err != nil {
				t.Fatal(err)
			}
		}
		seeded, err := to.Journal(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := journalText(t, seeded); !slices.Equal(got, want) {
			t.Errorf("%s: got %d entries, want %d", c.name, len(got), len(want))
		}
		if last, err := seeded.Append(t.Context(), c.records, []byte("later")); err != nil || last != c.records+1 {
			t.Errorf("%s: append after the end: got %d, %v", c.name, last, err)
		}
	}
	other, err := to.Journal(t.Context(), "another")
	if err == nil {
		_, err = other.Append(t.Context(), 0, []byte("not the same"))
	}
	from, fromErr := store.Journal(t.Context(), "another")
	if fromErr == nil {
		_, fromErr = from.Append(t.Context(), 0, []byte("not those"))
	}
	if err := errors.Join(err, fromErr); err != nil {
		t.Fatal(err)
	}
	if err := to.Seed(t.Context(), "another", from); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("seeding a journal that has other records: got %v, want %v", err, engine.ErrCorrupt)
	}
	made = append(made, "another")
	names, err := to.Names(t.Context())
	slices.Sort(names)
	slices.Sort(made)
	if err != nil || !slices.Equal(names, made) {
		t.Errorf("names: got %q, %v, want %q", names, err, made)
	}
}
