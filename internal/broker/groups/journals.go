package groups

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// In an ensemble a member coordinates only the groups in the journals that it owns. It gains and
// loses journals at run time. Other members coordinate the other groups.

// JournalCount is the number of journals that the groups of a cluster are spread over.
const JournalCount = shards

// JournalOf returns the number of a group's journal.
func JournalOf(key Key) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.path()))
	return int(h.Sum64() % shards)
}

func journalName(i int) string { return fmt.Sprintf("groups-%02d", i) }

// ownedShards returns the shards that this member owns.
func (c *Coordinator) ownedShards() []*shard {
	held := make([]*shard, 0, shards)
	for i := range c.shards {
		if s := c.shards[i].Load(); s != nil {
			held = append(held, s)
		}
	}
	return held
}

// Journals returns the numbers of the journals that this member owns.
func (c *Coordinator) Journals() []int {
	held := make([]int, 0, shards)
	for i := range c.shards {
		if c.shards[i].Load() != nil {
			held = append(held, i)
		}
	}
	return held
}

// AcquireJournal begins to coordinate the groups of journal i, which it opens from journals. Stable groups
// continue, and their members have a full session timeout to send a heartbeat.
func (c *Coordinator) AcquireJournal(ctx context.Context, journals Journals, i int) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	s, err := c.openShard(ctx, journals, journalName(i))
	if err != nil {
		return err
	}
	if old := c.shards[i].Swap(s); old != nil {
		old.closeGroups()
		err = old.machine.Close()
	}
	s.resumeGroups()
	return err
}

// ReleaseJournal ends the coordination of the groups of journal i. Calls that wait return ErrClosed.
func (c *Coordinator) ReleaseJournal(i int) error {
	s := c.shards[i].Swap(nil)
	if s == nil {
		return nil
	}
	s.closeGroups()
	c.shares.drop(func(key Key) bool { return JournalOf(key) == i })
	return s.machine.Close()
}

// view returns the current state of a shard that this member owns.
func (s *shard) view() *state { return s.machine.View() }

// update appends records to the shard's journal and returns once they are durable. It does not
// depend on the context of one caller, because others may wait for the outcome.
func (s *shard) update(decide func(*state) ([][]byte, error)) error {
	err := s.updateContext(s.c.ctx, decide)
	if errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return err
}

// updateContext is update with a context.
func (s *shard) updateContext(ctx context.Context, decide func(*state) ([][]byte, error)) error {
	if s.machine == nil {
		return ErrNotCoordinator
	}
	_, err := s.machine.Update(ctx, decide)
	return asClosedError(err)
}

// asClosedError converts errors of a journal that is closed or that another member owns to ErrClosed.
func asClosedError(err error) error {
	for _, sign := range []error{statemachine.ErrClosed, engine.ErrClosed, engine.ErrNotOwner, engine.ErrNoOwner} {
		if errors.Is(err, sign) {
			return fmt.Errorf("%w: %w", ErrClosed, err)
		}
	}
	return err
}
