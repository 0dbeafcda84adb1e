package groups

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// producersJournal stores which ids of idempotent producers are used, in blocks of producerIDBlock. A
// record is the first id after a block. A block is for one account; producerOwnersJournal stores for which.
const (
	producersJournal = "producers"
	producerIDBlock  = 1000
)

// producerIDs allocates ids of producers. mu protects blocks.
type producerIDs struct {
	machine *statemachine.Machine[*producerIDState]
	owners  *statemachine.Machine[*producerOwners]

	mu     sync.Mutex
	blocks map[string]*idBlock // by account
}

// idBlock is the unused rest of a block of ids.
type idBlock struct{ next, end int64 }

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

// openIDCounter opens the state machine of producersJournal.
func openIDCounter(ctx context.Context, journals Journals,
	log *slog.Logger,
) (*statemachine.Machine[*producerIDState], error) {
	journal, err := journals.Journal(ctx, producersJournal)
	if err != nil {
		return nil, fmt.Errorf("opening journal %s: %w", producersJournal, err)
	}
	return statemachine.Open(ctx, journal, statemachine.Options[*producerIDState]{
		Empty: &producerIDState{next: 1}, Name: producersJournal, Logger: log,
	})
}

// restoredIDs is how many ids at most a cluster issues between a backup and the restore of it.
const restoredIDs = 1 << 32

// SkipProducerIDs marks ids as issued that a cluster may have issued after the backup that it is restored from: the
// producers that use them continue, and nobody else gets them.
func SkipProducerIDs(ctx context.Context, journals Journals, log *slog.Logger) error {
	counter, err := openIDCounter(ctx, journals, log)
	if err != nil {
		return err
	}
	_, err = counter.Update(ctx, func(s *producerIDState) ([][]byte, error) {
		end := uint64(s.next + restoredIDs) //nolint:gosec // read as an int64
		return [][]byte{binary.BigEndian.AppendUint64(nil, end)}, nil
	})
	return errors.Join(err, counter.Close())
}

func (c *Coordinator) openProducerIDs(ctx context.Context, journals Journals) (err error) {
	if c.producers.machine, err = openIDCounter(ctx, journals, c.log); err != nil {
		return err
	}
	journal, err := journals.Journal(ctx, producerOwnersJournal)
	if err != nil {
		return fmt.Errorf("opening journal %s: %w", producerOwnersJournal, err)
	}
	c.producers.owners, err = statemachine.Open(ctx, journal, statemachine.Options[*producerOwners]{
		Empty: newProducerOwners(), Name: producerOwnersJournal, Logger: c.log,
	})
	c.producers.blocks = make(map[string]*idBlock)
	return err
}

// ProducerID returns an id that no producer has used, and that only the account may use.
func (c *Coordinator) ProducerID(ctx context.Context, account string) (int64, error) {
	p := &c.producers
	p.mu.Lock()
	defer p.mu.Unlock()
	block := p.blocks[account]
	if block == nil || block.next == block.end {
		next, err := p.allocateLocked(ctx, account)
		if err != nil {
			return 0, err
		}
		block = next
		p.blocks[account] = block
	}
	block.next++
	return block.next - 1, nil
}

// allocateLocked allocates a block of ids and stores its account. Without that record, after a crash between the
// two, nobody gets an id of the block.
func (p *producerIDs) allocateLocked(ctx context.Context, account string) (*idBlock, error) {
	var first int64
	_, err := p.machine.Update(ctx, func(s *producerIDState) ([][]byte, error) {
		first = s.next
		end := uint64(s.next + producerIDBlock) //nolint:gosec // read as an int64
		return [][]byte{binary.BigEndian.AppendUint64(nil, end)}, nil
	})
	if err != nil {
		return nil, err
	}
	block := idBlock{first, first + producerIDBlock}
	_, err = p.owners.Update(ctx, func(*producerOwners) ([][]byte, error) {
		return [][]byte{ownersRecord(block, account)}, nil
	})
	if err != nil {
		return nil, err
	}
	return &block, nil
}

// ProducerOwner reports whether an id was issued, by any member, and for which account. The account is "" for an
// id that an older version issued.
func (c *Coordinator) ProducerOwner(ctx context.Context, id int64) (account string, issued bool, err error) {
	p := &c.producers
	if account, ok := p.owners.View().owner(id); ok {
		return account, true, nil
	}
	if id > 0 && id < p.machine.View().next {
		return "", true, nil
	}
	// Another member may just have issued it.
	ids, err := p.machine.Fresh(ctx)
	if err != nil {
		return "", false, err
	}
	if id <= 0 || id >= ids.next {
		return "", false, nil
	}
	owners, err := p.owners.Fresh(ctx)
	if err != nil {
		return "", false, err
	}
	account, _ = owners.owner(id)
	return account, true, nil
}

// KnownProducerOwner returns the account for which an id was issued as far as this member knows, or "".
func (c *Coordinator) KnownProducerOwner(id int64) string {
	account, _ := c.producers.owners.View().owner(id)
	return account
}

// close closes the journals.
func (p *producerIDs) close() (failed error) {
	if p.owners != nil {
		failed = p.owners.Close()
	}
	if p.machine != nil {
		failed = errors.Join(failed, p.machine.Close())
	}
	return failed
}
