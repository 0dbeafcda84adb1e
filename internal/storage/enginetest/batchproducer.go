package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"freshet/internal/storage/engine"
)

// batchProducer appends batches to a partition of the log, several before it waits for the first,
// and stores its last number in an attribute.
type batchProducer struct {
	h      *history
	next   int
	sent   []producedBatch
	latest string // the value that the attribute must have after the power failure
}

type producedBatch struct {
	*batch
	attribute string
}

const batchPartition = 1

func newBatchProducer(h *history) *batchProducer { return &batchProducer{h: h} }

func (s *batchProducer) step(rng *rand.Rand) {
	type pendingBatch struct {
		*batch
		engine.PendingAppend
	}
	var waiting []pendingBatch
	for range 1 + rng.IntN(4) {
		var names []string
		size := []int{300, 300, 6000}[rng.IntN(3)] // an engine may store large batches elsewhere
		for range 1 + rng.IntN(4) {
			names = append(names, fmt.Sprintf("streamer/%d/%s", s.next, strings.Repeat("y", rng.IntN(size))))
			s.next++
		}
		b := s.h.noteSent(logTopic, names...)
		attribute := fmt.Sprint(s.next)
		s.sent = append(s.sent, producedBatch{b, attribute})
		pending, err := s.h.e.AppendBatch(s.h.ctx, logTopic, batchPartition, plainBatch(names...),
			[]engine.AttributeWrite{writeOf("streamer", attribute)})
		if err != nil {
			if s.h.alive() {
				s.h.Errorf("append a batch: got error %v, want none", err)
			}
			return
		}
		waiting = append(waiting, pendingBatch{b, pending})
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
			s.h.noteResult(m, engine.MessageID{
				Topic: logTopic, Partition: batchPartition,
				Entry: p.First() + uint64(i),
			})
		}
	}
}

// check compares the attribute with that of the last batch in the log: it is neither ahead of
// the log nor behind it.
func (s *batchProducer) check() {
	s.h.Helper()
	for _, r := range s.sent {
		if r.msgs[0].stored {
			s.latest = r.attribute
		}
	}
	s.sent = nil
	got := ""
	err := s.h.e.Attributes(s.h.ctx, logTopic, batchPartition, []byte("streamer"),
		func(attribute engine.Attribute) error {
			got = string(attribute.Value)
			return nil
		})
	if err != nil || got != s.latest {
		s.h.Fatalf("attribute: got %q, %v; want %q, that of the last batch in the log", got, err, s.latest)
	}
}
