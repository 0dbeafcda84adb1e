package groups

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// A member of a group has only the journals whose stores it owns. It gains and
// loses them while it runs; what it does not have another member coordinates.

// JournalCount is how many journals the groups of a cluster are spread over.
const JournalCount = shards

// JournalOf returns the number of the journal that a group is in.
func JournalOf(key Key) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.path()))
	return int(h.Sum64() % shards)
}

func journalOf(i int) string { return fmt.Sprintf("groups-%02d", i) }

// held are the shards that this member has.
func (c *Coordinator) held() []*shard {
	held := make([]*shard, 0, shards)
	for i := range c.shards {
		if s := c.shards[i].Load(); s != nil {
			held = append(held, s)
		}
	}
	return held
}

// Journals lists the journals of which this member coordinates the groups.
func (c *Coordinator) Journals() []int {
	held := make([]int, 0, shards)
	for i := range c.shards {
		if c.shards[i].Load() != nil {
			held = append(held, i)
		}
	}
	return held
}

// Gain begins to coordinate the groups of a journal, which journals must have.
// Groups that are stable go on, and their members have a whole session to be heard
// of.
func (c *Coordinator) Gain(ctx context.Context, journals Journals, i int) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	s, err := c.openShard(ctx, journals, journalOf(i))
	if err != nil {
		return err
	}
	if old := c.shards[i].Swap(s); old != nil {
		old.end()
		err = old.machine.Close()
	}
	s.wake()
	return err
}

// Lose ends the coordination of the groups of a journal: who waits is told that
// another member does it now.
func (c *Coordinator) Lose(i int) error {
	s := c.shards[i].Swap(nil)
	if s == nil {
		return nil
	}
	s.end()
	return s.machine.Close()
}

// view is the state of a shard that this member has.
func (s *shard) view() *state { return s.machine.View() }

// update appends records to the shard's journal and returns once they are
// durable. It goes on when a caller leaves: others may wait for the outcome.
func (s *shard) update(decide func(*state) ([][]byte, error)) error {
	err := s.change(s.c.ctx, decide)
	if errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return err
}

// change is update for as long as ctx lasts.
func (s *shard) change(ctx context.Context, decide func(*state) ([][]byte, error)) error {
	if s.machine == nil {
		return ErrNotCoordinator
	}
	_, err := s.machine.Update(ctx, decide)
	return lost(err)
}

// lost says of an error that means that the journal is another member's now, or
// closed, that somebody else coordinates.
func lost(err error) error {
	for _, sign := range []error{statemachine.ErrClosed, engine.ErrClosed, engine.ErrNotOwner, engine.ErrNoOwner} {
		if errors.Is(err, sign) {
			return fmt.Errorf("%w: %w", ErrClosed, err)
		}
	}
	return err
}
