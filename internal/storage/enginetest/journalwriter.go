package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"freshet/internal/storage/engine"
)

// journalWriter appends to a journal to which another writer appends as well.
type journalWriter struct {
	h     *history
	name  string
	count int
	known map[uint64]string // by position: appended or read before the power failure
	open  []string          // records of an append that did not return
}

func newJournalWriter(h *history, n int) *journalWriter {
	return &journalWriter{h: h, name: fmt.Sprintf("writer-%d", n), known: map[uint64]string{}}
}

func (s *journalWriter) step(rng *rand.Rand) {
	j, err := s.h.e.Journal(s.h.ctx, "journal")
	if err != nil {
		if s.h.alive() {
			s.h.Errorf("journal: got error %v, want none", err)
		}
		return
	}
	state, last := s.replay(j)
	if !s.h.alive() {
		return
	}
	for i, r := range state {
		s.known[uint64(i+1)] = r
	}
	if rng.IntN(6) == 0 {
		err := j.SaveSnapshot(s.h.ctx, last, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(state, "\n"))
			return err
		})
		if err != nil && s.h.alive() {
			s.h.Errorf("snapshot: got error %v, want none", err)
		}
		return
	}
	var records [][]byte
	s.open = nil
	for range 1 + rng.IntN(3) {
		r := fmt.Sprintf("%s/%d", s.name, s.count)
		s.count++
		s.open = append(s.open, r)
		records = append(records, []byte(r))
	}
	end, err := j.Append(s.h.ctx, last, records...)
	if !s.h.alive() {
		return
	}
	switch {
	case err == nil:
		for i, r := range s.open {
			s.known[end-uint64(len(s.open)-1-i)] = r
		}
	case !errors.Is(err, engine.ErrConflict):
		s.h.Errorf("journal append: got error %v, want none or %v", err, engine.ErrConflict)
	}
	s.open = nil
}

// replay reads the journal from its snapshot on, and starts again when a snapshot is saved
// meanwhile.
func (s *journalWriter) replay(j engine.Journal) (state []string, last uint64) {
	s.h.Helper()
	for {
		position, r, err := j.LoadSnapshot(s.h.ctx)
		if err != nil {
			s.errorf("load snapshot: got error %v, want none", err)
			return nil, 0
		}
		state = nil
		if r != nil {
			text, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil {
				s.errorf("read snapshot: got error %v, want none", err)
			}
			for line := range bytes.Lines(text) {
				state = append(state, strings.TrimSuffix(string(line), "\n"))
			}
		}
		last, err = j.Replay(s.h.ctx, position, func(_ uint64, record []byte) error {
			state = append(state, string(record))
			return nil
		})
		if errors.Is(err, engine.ErrCompacted) {
			continue
		}
		if err != nil || last != uint64(len(state)) {
			s.errorf("replay: got last position %d, error %v; want %d and no error", last, err, len(state))
		}
		return state, last
	}
}

// errorf fails the test, unless the power has failed: then calls may fail.
func (s *journalWriter) errorf(format string, args ...any) {
	s.h.Helper()
	if s.h.alive() {
		s.h.Errorf(format, args...)
	}
}

func (s *journalWriter) check() {
	s.h.Helper()
	j, err := s.h.e.Journal(s.h.ctx, "journal")
	if err != nil {
		s.h.Fatalf("journal: got error %v, want none", err)
	}
	state, _ := s.replay(j)
	at := map[string]int{}
	for i, r := range state {
		if _, twice := at[r]; twice {
			s.h.Fatalf("got record %q twice, want it once", r)
		}
		at[r] = i + 1
	}
	for position, r := range s.known {
		if position > uint64(len(state)) || state[position-1] != r {
			s.h.Fatalf("got journal %q, want %q at position %d", state, r, position)
		}
	}
	for i, r := range s.open {
		if (at[r] != 0) != (at[s.open[0]] != 0) || at[r] != 0 && at[r] != at[s.open[0]]+i {
			s.h.Fatalf("got journal %q, want all of the append %q or none", state, s.open)
		}
	}
	s.open = nil
}
