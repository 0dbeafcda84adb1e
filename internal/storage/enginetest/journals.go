package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"freshet/internal/storage/engine"
)

func (v *env) journal(name string) engine.Journal {
	v.Helper()
	j, err := v.Journal(v.ctx, name)
	v.ok(err)
	return j
}

// replay returns the records after a position.
func (v *env) replay(j engine.Journal, after uint64) []string {
	v.Helper()
	out := []string{}
	last, err := j.Replay(v.ctx, after, func(position uint64, record []byte) error {
		if want := after + uint64(len(out)) + 1; position != want {
			v.Fatalf("replay: got position %d, want %d", position, want)
		}
		out = append(out, string(record))
		return nil
	})
	v.ok(err)
	if last != after+uint64(len(out)) {
		v.Fatalf("end of the replay: got %d, want %d after %d records", last, after+uint64(len(out)), len(out))
	}
	return out
}

func (v *env) add(j engine.Journal, after uint64, records ...string) uint64 {
	v.Helper()
	var bs [][]byte
	for _, r := range records {
		bs = append(bs, []byte(r))
	}
	last, err := j.Append(v.ctx, after, bs...)
	v.ok(err)
	return last
}

func (v *env) snapshot(j engine.Journal, position uint64, state []byte) {
	v.Helper()
	v.ok(j.SaveSnapshot(v.ctx, position, func(w io.Writer) error {
		_, err := w.Write(state)
		return err
	}))
}

func (v *env) load(j engine.Journal) (uint64, []byte) {
	v.Helper()
	position, r, err := j.LoadSnapshot(v.ctx)
	v.ok(err)
	if r == nil {
		return position, nil
	}
	state, err := io.ReadAll(r)
	v.ok(err)
	v.ok(r.Close())
	return position, state
}

var journalTests = []testCase{
	{"records are replayed in order after any position", func(v *env) {
		j := v.journal("j")
		if last, err := j.Last(v.ctx); last != 0 || err != nil {
			v.Fatalf("end of a new journal: got %d, %v; want 0", last, err)
		}
		v.same(v.replay(j, 0), []string{})
		if last := v.add(j, 0, "a"); last != 1 {
			v.Fatalf("got position %d, want 1", last)
		}
		if last := v.add(j, 1, "b", "", "d"); last != 4 {
			v.Fatalf("got position %d, want 4", last)
		}
		v.same(v.replay(j, 0), []string{"a", "b", "", "d"})
		v.same(v.replay(j, 3), []string{"d"})
		v.crash()
		j = v.journal("j")
		v.same(v.replay(j, 0), []string{"a", "b", "", "d"})
		v.same(v.replay(v.journal("other"), 0), []string{})
		v.add(v.journal("other"), 0, "x")
		v.same(v.replay(j, 4), []string{})
	}},
	{"an append of a writer that did not read the last record conflicts", func(v *env) {
		j := v.journal("j")
		v.add(j, 0, "a", "b")
		_, err := j.Append(v.ctx, 1, []byte("x"))
		v.want(err, engine.ErrConflict)
		_, err = j.Append(v.ctx, 0, []byte("x"), []byte("y"))
		v.want(err, engine.ErrConflict)
		_, err = j.Append(v.ctx, 3, []byte("x"))
		v.want(err, engine.ErrInvalid)
		v.same(v.replay(j, 0), []string{"a", "b"})
		v.reopen()
		j = v.journal("j")
		_, err = j.Append(v.ctx, 0, []byte("x"))
		v.want(err, engine.ErrConflict)
	}},
	{"one of many concurrent writers wins each position", testContention},
	{"an error of visit ends the replay and is returned", func(v *env) {
		j := v.journal("j")
		v.add(j, 0, "a", "b", "c")
		stop := errors.New("stop")
		last, err := j.Replay(v.ctx, 0, func(position uint64, _ []byte) error {
			if position == 2 {
				return stop
			}
			return nil
		})
		v.want(err, stop)
		if last != 1 {
			v.Fatalf("got last position %d, want 1", last)
		}
	}},
	{"wait returns with the next record", func(v *env) {
		j := v.journal("j")
		v.add(j, 0, "a")
		v.ok(j.Wait(v.ctx, 0))
		done := make(chan error, 2)
		go func() { done <- j.Wait(v.ctx, 1) }()
		v.sleep(0.5)
		v.add(v.journal("other"), 0, "x")
		v.add(j, 1, "b")
		v.ok(<-done)
		v.same(v.replay(j, 1), []string{"b"})
		ctx, cancel := context.WithCancel(v.ctx)
		go func() { done <- j.Wait(ctx, 2) }()
		v.sleep(0.5)
		cancel()
		v.want(<-done, context.Canceled)
	}},
	{"a snapshot replaces the records up to its position", func(v *env) {
		j := v.journal("j")
		if p, state := v.load(j); p != 0 || state != nil {
			v.Fatalf("new journal: got a snapshot %q at %d, want none", state, p)
		}
		v.add(j, 0, numbered("r", 1, 11)...)
		v.snapshot(j, 6, []byte("six"))
		check := func() {
			v.Helper()
			if p, state := v.load(j); p != 6 || string(state) != "six" {
				v.Fatalf("got snapshot %q at %d, want %q at 6", state, p, "six")
			}
			v.same(v.replay(j, 6), numbered("r", 7, 11))
			_, err := j.Replay(v.ctx, 5, func(uint64, []byte) error { return nil })
			v.want(err, engine.ErrCompacted)
		}
		check()
		v.crash()
		j = v.journal("j")
		check()
		v.want(j.SaveSnapshot(v.ctx, 11, func(io.Writer) error { return nil }), engine.ErrInvalid)
		v.snapshot(j, 10, nil)
		if p, state := v.load(j); p != 10 || len(state) != 0 {
			v.Fatalf("got snapshot %q at %d, want an empty one at 10", state, p)
		}
		v.reopen()
		j = v.journal("j")
		if last, err := j.Last(v.ctx); last != 10 || err != nil {
			v.Fatalf("end of the journal: got %d, %v; want 10", last, err)
		}
		if last := v.add(j, 10, "next"); last != 11 {
			v.Fatalf("append after a snapshot: got position %d, want 11", last)
		}
		v.snapshot(j, 3, []byte("old")) // older than the stored snapshot
		if p, _ := v.load(j); p != 10 {
			v.Fatalf("got the snapshot at %d, want the newer one at 10", p)
		}
	}},
	{"a snapshot may be large, and a failed one changes nothing", func(v *env) {
		j := v.journal("j")
		v.add(j, 0, "a", "b")
		state := make([]byte, 3<<20+17)
		rng := rand.NewChaCha8([32]byte{})
		_, _ = rng.Read(state)
		v.snapshot(j, 1, state)
		broken := errors.New("broken")
		err := j.SaveSnapshot(v.ctx, 2, func(w io.Writer) error {
			_, _ = w.Write(make([]byte, 1<<20))
			return broken
		})
		v.want(err, broken)
		v.crash()
		j = v.journal("j")
		if p, got := v.load(j); p != 1 || !bytes.Equal(got, state) {
			v.Fatalf("got a snapshot of %d bytes at %d, want the %d bytes at 1", len(got), p, len(state))
		}
		v.same(v.replay(j, 1), []string{"b"})
	}},
	{"an open snapshot stays readable when a newer one is saved", func(v *env) {
		j := v.journal("j")
		v.add(j, 0, "a", "b")
		old := bytes.Repeat([]byte("old"), 1<<19)
		v.snapshot(j, 1, old)
		_, r, err := j.LoadSnapshot(v.ctx)
		v.ok(err)
		v.snapshot(j, 2, bytes.Repeat([]byte("new"), 1<<19))
		got, err := io.ReadAll(r)
		v.ok(err)
		v.ok(r.Close())
		if !bytes.Equal(got, old) {
			v.Fatalf("got %d bytes that start with %.10q, want the %d bytes of the old snapshot", len(got),
				got, len(old))
		}
	}},
}

// testContention runs several replicas: each decides on the state that it has applied, appends
// conditionally, and decides again after a conflict.
func testContention(v *env) {
	const writers, each = 6, 30
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			j, err := v.Journal(v.ctx, "j")
			if err != nil {
				v.Error(err)
				return
			}
			applied, sum := uint64(0), 0
			for n := range each {
				for {
					applied, err = j.Replay(v.ctx, applied, func(uint64, []byte) error { sum++; return nil })
					if err != nil {
						v.Error(err)
						return
					}
					record := fmt.Appendf(nil, "%d/%d after %d", w, n, sum)
					if _, err = j.Append(v.ctx, applied, record); err == nil {
						break
					}
					if !errors.Is(err, engine.ErrConflict) {
						v.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	j := v.journal("j")
	records := v.replay(j, 0)
	if len(records) != writers*each {
		v.Fatalf("got %d records, want %d", len(records), writers*each)
	}
	next := map[int]int{}
	for i, r := range records {
		var w, n, sum int
		if _, err := fmt.Sscanf(r, "%d/%d after %d", &w, &n, &sum); err != nil {
			v.Fatal(err)
		}
		if sum != i || n != next[w] {
			v.Fatalf("record %d: got %q, want number %d of its writer, decided on %d records", i, r, next[w], i)
		}
		next[w]++
	}
}
