package groups

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// producersJournal stores which ids of idempotent producers are used, in blocks of producerIDBlock. A
// record is the first id after a block.
const (
	producersJournal = "producers"
	producerIDBlock  = 1000
)

// producerIDs allocates ids of producers. mu protects next and end, the unused rest of a block.
type producerIDs struct {
	machine *statemachine.Machine[*producerIDState]

	mu        sync.Mutex
	next, end int64
}

// producerIDState is the first id that is not allocated.
type producerIDState struct{ next int64 }

// Clone implements statemachine.State.
func (s *producerIDState) Clone() *producerIDState { return &producerIDState{s.next} }

// Apply implements statemachine.State.
func (s *producerIDState) Apply(_ uint64, record []byte) error {
	if len(record) != 8 {
		return fmt.Errorf("%w: record of producer ids has %d bytes", engine.ErrCorrupt, len(record))
	}
	s.next = int64(binary.BigEndian.Uint64(record)) //nolint:gosec // written from an int64
	return nil
}

// Snapshot implements statemachine.State.
func (s *producerIDState) Snapshot(w io.Writer) error {
	_, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(s.next))) //nolint:gosec // read as an int64
	return err
}

// Restore implements statemachine.State.
func (s *producerIDState) Restore(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, 9))
	if err != nil {
		return err
	}
	return s.Apply(0, data)
}

func (c *Coordinator) openProducerIDs(ctx context.Context, journals Journals) error {
	journal, err := journals.Journal(ctx, producersJournal)
	if err != nil {
		return fmt.Errorf("opening journal %s: %w", producersJournal, err)
	}
	c.producers.machine, err = statemachine.Open(ctx, journal, statemachine.Options[*producerIDState]{
		Empty: &producerIDState{next: 1}, Name: producersJournal, Logger: c.log,
	})
	return err
}

// ProducerID returns an id that no producer has used.
func (c *Coordinator) ProducerID(ctx context.Context) (int64, error) {
	p := &c.producers
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == p.end {
		var first int64
		_, err := p.machine.Update(ctx, func(s *producerIDState) ([][]byte, error) {
			first = s.next
			end := uint64(s.next + producerIDBlock) //nolint:gosec // read as an int64
			return [][]byte{binary.BigEndian.AppendUint64(nil, end)}, nil
		})
		if err != nil {
			return 0, err
		}
		p.next, p.end = first, first+producerIDBlock
	}
	p.next++
	return p.next - 1, nil
}
