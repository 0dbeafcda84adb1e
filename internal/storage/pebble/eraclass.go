package pebble

import (
	"encoding/binary"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// eraClass says how Pebble stores the values of an era. Compressing a large batch when it is
// flushed, and decompressing and compressing it again in each compaction, costs several times
// as much as writing it, and nothing at all is gained for a batch that its producer has compressed
// already. So large batches are written in eras of their own, whose tables are not compressed
// (docs/adr: large batches in uncompressed tables).
//
// The class is a function of the number of an era, because Pebble asks for the policy of
// a key while it opens a store and while it compacts: erasPerClass consecutive eras are of one class,
// the next ones of the other. Stores of earlier builds have messages of all kinds in all eras; they
// are read in the same way, and keep the compression of their tables until these are compacted.
type eraClass uint32

const (
	compressedEra   eraClass = iota // messages, and small batches
	uncompressedEra                 // batches in the format of their producer
	eraClasses      = 2

	// erasPerClass limits the size of tables, which do not contain eras of both classes.
	erasPerClass = 16
)

// minUncompressedBatch is the size from which on batches are not compressed. A block of
// a table contains values up to this size together, and only a larger one alone.
const minUncompressedBatch = 4 << 10

// classOf returns the class of an era.
func classOf(era uint32) eraClass { return eraClass(era / erasPerClass % eraClasses) }

// nextEra returns the first era of a class after newest.
func nextEra(newest uint32, class eraClass) uint32 {
	next := newest + 1
	if classOf(next) != class {
		next = (next/erasPerClass + 1) * erasPerClass
	}
	return next
}

// class returns the class of eras for the batch. The messages of an internal batch come
// uncompressed from HTTP, which has no compression of its own, so they stay compressed here.
func (r *packedBatch) class() eraClass {
	if r.format == internalFormat || r.size() < minUncompressedBatch {
		return compressedEra
	}
	return uncompressedEra
}

// uncompressed is the profile of tables for which no span policy asks for compression. It is
// a copy, because Pebble ignores SpanPolicy.PreferFastCompression where the profile is its own
// sstable.NoCompression.
func uncompressed() *sstable.CompressionProfile {
	profile := *sstable.NoCompression
	return &profile
}

// spanPolicy implements Pebble's SpanPolicyFunc: a table contains either messages of eras of one
// class, or other keys. Other keys sort after all messages, so a table with both would overlap
// every future era and be rewritten with each of them.
func spanPolicy(start []byte) (policy cdb.SpanPolicy, end []byte, err error) {
	compressed := cdb.SpanPolicy{PreferFastCompression: true}
	switch {
	case len(start) == 0 || start[0] < keyMessage:
		return compressed, []byte{keyMessage}, nil
	case start[0] > keyMessage:
		return compressed, nil, nil
	}
	var era [4]byte
	copy(era[:], start[1:])
	number := binary.BigEndian.Uint32(era[:])
	end = []byte{keyMessage + 1}
	if next := (number/erasPerClass + 1) * erasPerClass; next != 0 {
		end = binary.BigEndian.AppendUint32([]byte{keyMessage}, next)
	}
	if classOf(number) == uncompressedEra {
		return cdb.SpanPolicy{}, end, nil
	}
	return compressed, end, nil
}
