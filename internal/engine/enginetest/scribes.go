package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"freshet/internal/engine"
)

// scribe writes to a journal that another scribe writes to as well.
type scribe struct {
	h     *history
	name  string
	count int
	known map[uint64]string // by position: answered or read before the cut
	open  []string          // appended without an answer
}

func newScribe(h *history, n int) *scribe {
	return &scribe{h: h, name: fmt.Sprintf("scribe-%d", n), known: map[uint64]string{}}
}

func (s *scribe) step(rng *rand.Rand) {
	j, err := s.h.e.Journal(s.h.ctx, "journal")
	if err != nil {
		if s.h.alive() {
			s.h.Errorf("journal: %v", err)
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
			s.h.Errorf("snapshot: %v", err)
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
		s.h.Errorf("journal append: %v", err)
	}
	s.open = nil
}

// replay reads the journal from its snapshot on, whoever saves one meanwhile.
func (s *scribe) replay(j engine.Journal) (state []string, last uint64) {
	s.h.Helper()
	for {
		position, r, err := j.LoadSnapshot(s.h.ctx)
		if err != nil {
			s.h.Errorf("load snapshot: %v", err)
			return nil, 0
		}
		state = nil
		if r != nil {
			text, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil {
				s.h.Errorf("read snapshot: %v", err)
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
			s.h.Errorf("replay to %d with %d records: %v", last, len(state), err)
		}
		return state, last
	}
}

func (s *scribe) check() {
	s.h.Helper()
	j, err := s.h.e.Journal(s.h.ctx, "journal")
	if err != nil {
		s.h.Fatalf("journal: %v", err)
	}
	state, _ := s.replay(j)
	at := map[string]int{}
	for i, r := range state {
		if _, twice := at[r]; twice {
			s.h.Fatalf("record %q stands twice", r)
		}
		at[r] = i + 1
	}
	for position, r := range s.known {
		if position > uint64(len(state)) || state[position-1] != r {
			s.h.Fatalf("record %d was %q, and the journal is %q", position, r, state)
		}
	}
	for i, r := range s.open {
		if (at[r] != 0) != (at[s.open[0]] != 0) || at[r] != 0 && at[r] != at[s.open[0]]+i {
			s.h.Fatalf("of one append %q only a part is there: %q", s.open, state)
		}
	}
	s.open = nil
}

// admin creates and deletes topics of its own.
type admin struct {
	h    *history
	next engine.TopicID
	is   map[engine.TopicID]bool // answered
	open engine.TopicID          // changed without an answer
}

func newAdmin(h *history) *admin {
	return &admin{h: h, next: freeTopics, is: map[engine.TopicID]bool{}}
}

func (a *admin) step(rng *rand.Rand) {
	id, create := a.next, true
	for old, there := range a.is {
		if there && rng.IntN(2) == 0 {
			id, create = old, false
		}
	}
	a.open = id
	var err error
	if create {
		a.next++
		err = a.h.e.CreateTopic(a.h.ctx, id, engine.TopicConfig{Partitions: 1})
	} else {
		err = a.h.e.DeleteTopic(a.h.ctx, id)
	}
	if !a.h.alive() {
		return
	}
	if err != nil {
		a.h.Errorf("topic %d: %v", id, err)
	}
	a.is[id], a.open = create, 0
}

func (a *admin) check() {
	a.h.Helper()
	ids, err := a.h.e.ListTopics(a.h.ctx, freeTopics-1, 10000)
	if err != nil {
		a.h.Fatalf("list: %v", err)
	}
	there := map[engine.TopicID]bool{}
	for _, id := range ids {
		there[id] = true
	}
	for id, want := range a.is {
		if id != a.open && there[id] != want {
			a.h.Fatalf("topic %d is there: %v, want %v", id, there[id], want)
		}
	}
	for id := range there {
		if _, known := a.is[id]; !known && id != a.open {
			a.h.Fatalf("topic %d was never made", id)
		}
	}
	if a.open != 0 {
		a.is[a.open], a.open = there[a.open], 0
	}
}
