package pebble

import (
	"context"
	"errors"
	"io"
	"testing"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// TestDamagedJournalIsUnhealthy checks that a store in which a record or a snapshot of a journal cannot be read is
// unhealthy, so that operators see it and not only the caller.
func TestDamagedJournalIsUnhealthy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		damage func(e *Engine, j *journal) error
		read   func(j engine.Journal) error
	}{
		"checksum of a record": {
			damage: func(e *Engine, j *journal) error {
				return e.db.Set(recordKey(j.id, 2), []byte("damaged"), cdb.Sync)
			},
			read: replayAll,
		},
		"missing record": {
			damage: func(e *Engine, j *journal) error { return e.db.Delete(recordKey(j.id, 2), cdb.Sync) },
			read:   replayAll,
		},
		"checksum of a snapshot": {
			damage: func(e *Engine, j *journal) error { return damageChunk(e, j, false) },
			read:   loadSnapshot,
		},
		"missing part of a snapshot": {
			damage: func(e *Engine, j *journal) error { return damageChunk(e, j, true) },
			read:   loadSnapshot,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := Open("store", Options{FS: vfs.NewMem()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			opened, err := e.Journal(t.Context(), "j")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := opened.Append(t.Context(), 0, []byte("1"), []byte("2"), []byte("3")); err != nil {
				t.Fatal(err)
			}
			err = opened.SaveSnapshot(t.Context(), 1, func(w io.Writer) error {
				_, err := w.Write([]byte("state"))
				return err
			})
			if err = errors.Join(err, e.Health(), tc.damage(e, opened.(*journal))); err != nil {
				t.Fatal(err)
			}
			if err := tc.read(opened); !errors.Is(err, engine.ErrCorrupt) {
				t.Errorf("reading: got error %v, want %v", err, engine.ErrCorrupt)
			}
			if err := e.Health(); !errors.Is(err, engine.ErrCorrupt) {
				t.Errorf("health: got %v, want %v", err, engine.ErrCorrupt)
			}
		})
	}
}

func replayAll(j engine.Journal) error {
	_, err := j.Replay(context.Background(), 1, func(uint64, []byte) error { return nil })
	return err
}

func loadSnapshot(j engine.Journal) error {
	_, state, err := j.LoadSnapshot(context.Background())
	if err != nil {
		return err
	}
	defer state.Close()
	_, err = io.ReadAll(state)
	return err
}

// damageChunk damages or deletes the first part of a journal's snapshot.
func damageChunk(e *Engine, j *journal, remove bool) error {
	snap, err := j.durableSnapshot(context.Background())
	if err != nil {
		return err
	}
	key := chunkKey(j.id, snap.id, 0)
	if remove {
		return e.db.Delete(key, cdb.Sync)
	}
	return e.db.Set(key, []byte("damaged"), cdb.Sync)
}
