package groups

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tidwall/btree"

	"freshet/internal/base/framing"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// producerOwnersJournal stores the account of each block of producer ids. It is a journal of its own because the
// members of an ensemble that still run an older version read producersJournal.
const (
	producerOwnersJournal = "producer-owners"
	// maxOwnedBlocks bounds the blocks whose account is known. The ids of older blocks may be used by any account.
	maxOwnedBlocks = 100_000
	// blockRecord is the first byte of a record: first id, first id after the block, account.
	blockRecord = 1
)

// producerOwners is the account of each block of ids. Adjacent blocks of an account are one entry.
type producerOwners struct {
	blocks *btree.Map[int64, ownedBlock] // by their first id
}

type ownedBlock struct {
	end     int64 // first id after the block
	account string
}

func newProducerOwners() *producerOwners { return &producerOwners{new(btree.Map[int64, ownedBlock])} }

// owner returns the account of an id.
func (s *producerOwners) owner(id int64) (account string, ok bool) {
	s.blocks.Descend(id, func(_ int64, b ownedBlock) bool {
		if id < b.end {
			account, ok = b.account, true
		}
		return false
	})
	return account, ok
}

func ownersRecord(ids idBlock, account string) []byte {
	w := wire.Writer{blockRecord}
	w.Varint(ids.next)
	w.Varint(ids.end)
	w.Text(account)
	return w
}

// Clone implements statemachine.State.
func (s *producerOwners) Clone() *producerOwners { return &producerOwners{s.blocks.Copy()} }

// Apply implements statemachine.State.
func (s *producerOwners) Apply(_ uint64, record []byte) error {
	if len(record) == 0 {
		return fmt.Errorf("%w: empty record", engine.ErrCorrupt)
	}
	if record[0] != blockRecord {
		return fmt.Errorf("%w: record of producer ids of kind %d", engine.ErrNewerFormat, record[0])
	}
	r := wire.NewReader(record[1:])
	first, end, account := r.Varint(), r.Varint(), r.Text()
	if err := r.End(); err != nil {
		return fmt.Errorf("%w: record of producer ids: %w", engine.ErrCorrupt, err)
	}
	s.blocks.Descend(first, func(before int64, b ownedBlock) bool {
		if b.end == first && b.account == account {
			first = before
		}
		return false
	})
	s.blocks.Set(first, ownedBlock{end, account})
	if s.blocks.Len() > maxOwnedBlocks {
		s.blocks.PopMin()
	}
	return nil
}

// Snapshot implements statemachine.State.
func (s *producerOwners) Snapshot(out io.Writer) error {
	w := bufio.NewWriter(out)
	var failed error
	s.blocks.Scan(func(first int64, b ownedBlock) bool {
		failed = framing.WriteFrame(w, ownersRecord(idBlock{first, b.end}, b.account))
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return w.Flush()
}

// Restore implements statemachine.State.
func (s *producerOwners) Restore(in io.Reader) error {
	return applyEach(in, 1<<20, s.Apply)
}
