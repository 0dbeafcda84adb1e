package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"freshet/internal/storage/engine"
)

// streamer appends batches to a partition of the log, several before it waits for the first,
// and stores its last number in an attribute.
type streamer struct {
	h      *history
	next   int
	sent   []streamedRun
	latest string // the value that the attribute must have after the power failure
}

type streamedRun struct {
	*batch
	side string
}

const streamedPart = 1

func newStreamer(h *history) *streamer { return &streamer{h: h} }

func (s *streamer) step(rng *rand.Rand) {
	type placed struct {
		*batch
		engine.Ticket
	}
	var waiting []placed
	for range 1 + rng.IntN(4) {
		var names []string
		for range 1 + rng.IntN(4) {
			names = append(names, fmt.Sprintf("streamer/%d/%s", s.next, strings.Repeat("y", rng.IntN(300))))
			s.next++
		}
		b := s.h.noteSent(logTopic, names...)
		side := fmt.Sprint(s.next)
		s.sent = append(s.sent, streamedRun{b, side})
		ticket, err := s.h.e.AppendRun(s.h.ctx, logTopic, streamedPart, run(names...), func(uint64) []engine.Side {
			return []engine.Side{{Key: []byte("streamer"), Value: []byte(side)}}
		})
		if err != nil {
			if s.h.alive() {
				s.h.Errorf("append a batch: got error %v, want none", err)
			}
			return
		}
		waiting = append(waiting, placed{b, ticket})
	}
	for _, p := range waiting {
		err := p.Wait(s.h.ctx)
		if !s.h.alive() {
			return
		}
		if err != nil {
			s.h.Errorf("wait for a batch: got error %v, want none", err)
			return
		}
		for i, m := range p.msgs {
			s.h.noteAnswer(m, engine.MessageID{Topic: logTopic, Partition: streamedPart, Entry: p.First() + uint64(i)})
		}
	}
}

// check compares the attribute with that of the last batch in the log: it is neither ahead of
// the log nor behind it.
func (s *streamer) check() {
	s.h.Helper()
	for _, r := range s.sent {
		if r.msgs[0].there {
			s.latest = r.side
		}
	}
	s.sent = nil
	got := ""
	err := s.h.e.Sides(s.h.ctx, logTopic, streamedPart, []byte("streamer"), func(side engine.Side) error {
		got = string(side.Value)
		return nil
	})
	if err != nil || got != s.latest {
		s.h.Fatalf("attribute: got %q, %v; want %q, that of the last batch in the log", got, err, s.latest)
	}
}
