package pebble

import (
	"encoding/binary"

	"freshet/internal/storage/engine"
)

// Every key starts with a byte for its kind. Numbers are big-endian, so that keys sort by
// topic, partition and entry.
const (
	keyFormat      = 'F' // format version of the store
	keyEraNow      = 'E' // current era
	keyLogPosition = 'L' // position up to which the external log is applied
	keyTopic       = 't' // topic kind ...: everything of a topic except its messages
	keyMessage     = 'm' // era topic partition entry → record; a batch has its last entry
	keyDue         = 'x' // time topic → nothing: when the topic has to be trimmed
	keyJournal     = 'J' // name → journal number
	keyRecord      = 'j' // journal position → record
	keySnapshot    = 'K' // journal → latest snapshot
	keyChunk       = 'k' // journal snapshot chunk → part of a snapshot
)

// The kinds of a topic's keys, in the order in which they are read when the topic is
// loaded. Those from ofAcks on are read when they are needed.
const (
	ofConfig    = 'a' // → configuration
	ofHead      = 'b' // partition → first entry that is not trimmed
	ofEra       = 'c' // partition era → first entry of the partition in that era
	ofDelay     = 'd' // partition entry → time before which it is not delivered
	ofDue       = 'e' // → time under which the topic is listed in keyDue
	ofSub       = 'f' // name → subscription
	ofCursor    = 'g' // subscription partition → floor
	ofBatches   = 'h' // partition → nothing: it has, or had, batches
	ofAcks      = 'p' // subscription partition block → bitmap
	ofCount     = 'q' // subscription partition entry → deliveries so far
	ofDedup     = 'r' // producer sequence → message id, for deduplication
	ofAttribute = 's' // partition key → value of an attribute
)

// topicPrefixLen is the length of the common prefix of a topic's keys; kindLen is the
// length up to and including the kind.
const (
	topicPrefixLen = 1 + 8
	kindLen        = topicPrefixLen + 1
)

// A message's key starts with the era in which it was written, so that new messages sort
// after old ones and compactions of new messages do not rewrite old ones. See era.go.
const messageKeyLen = 1 + 4 + 8 + 4 + 8

func putMessageKey(key []byte, era uint32, id engine.TopicID, part int32, entry uint64) {
	_ = key[messageKeyLen-1]
	key[0] = keyMessage
	binary.BigEndian.PutUint32(key[1:], era)
	binary.BigEndian.PutUint64(key[5:], uint64(id))
	binary.BigEndian.PutUint32(key[13:], uint32(part))
	binary.BigEndian.PutUint64(key[17:], entry)
}

func messageKey(era uint32, id engine.TopicID, part int32, entry uint64) []byte {
	key := make([]byte, messageKeyLen)
	putMessageKey(key, era, id, part, entry)
	return key
}

// messageEntry returns the entry in a message's key.
func messageEntry(key []byte) uint64 { return binary.BigEndian.Uint64(key[17:]) }

func eraTopicKey(era uint32, id engine.TopicID) []byte {
	key := binary.BigEndian.AppendUint32([]byte{keyMessage}, era)
	return binary.BigEndian.AppendUint64(key, uint64(id))
}

func eraKey(id engine.TopicID, part int32, era uint32) []byte {
	return binary.BigEndian.AppendUint32(partitionKey(ofEra, id, part), era)
}

func topicPrefix(id engine.TopicID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyTopic}, uint64(id))
}

func topicKey(kind byte, id engine.TopicID) []byte {
	return append(topicPrefix(id), kind)
}

func partitionKey(kind byte, id engine.TopicID, part int32) []byte {
	return binary.BigEndian.AppendUint32(topicKey(kind, id), uint32(part))
}

func delayKey(id engine.TopicID, part int32, entry uint64) []byte {
	return binary.BigEndian.AppendUint64(partitionKey(ofDelay, id, part), entry)
}

func subKey(id engine.TopicID, name string) []byte {
	return append(topicKey(ofSub, id), name...)
}

func ownedKey(kind byte, id engine.TopicID, sub uint32) []byte {
	return binary.BigEndian.AppendUint32(topicKey(kind, id), sub)
}

const cursorKeyLen = kindLen + 4 + 4

func cursorKey(kind byte, id engine.TopicID, sub uint32, part int32) []byte {
	return binary.BigEndian.AppendUint32(ownedKey(kind, id, sub), uint32(part))
}

const cursorEntryKeyLen = cursorKeyLen + 8

func cursorEntryKey(kind byte, id engine.TopicID, sub uint32, part int32, n uint64) []byte {
	return binary.BigEndian.AppendUint64(cursorKey(kind, id, sub, part), n)
}

// dedupKey contains the producer's name before the sequence number. The length in front
// prevents one name from being a prefix of another.
func dedupKey(id engine.TopicID, of engine.DedupKey) []byte {
	key := topicKey(ofDedup, id)
	key = binary.BigEndian.AppendUint32(key, uint32(len(of.Producer)))
	key = append(key, of.Producer...)
	return binary.BigEndian.AppendUint64(key, of.Sequence)
}

func dueKey(due int64, id engine.TopicID) []byte {
	key := binary.BigEndian.AppendUint64([]byte{keyDue}, uint64(due))
	return binary.BigEndian.AppendUint64(key, uint64(id))
}

func recordKey(journal uint32, position uint64) []byte {
	key := binary.BigEndian.AppendUint32([]byte{keyRecord}, journal)
	return binary.BigEndian.AppendUint64(key, position)
}

func snapshotKey(journal uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{keySnapshot}, journal)
}

func chunkKey(journal uint32, snapshot uint64, chunk uint32) []byte {
	key := binary.BigEndian.AppendUint32([]byte{keyChunk}, journal)
	key = binary.BigEndian.AppendUint64(key, snapshot)
	return binary.BigEndian.AppendUint32(key, chunk)
}

// after returns the first key after all keys that start with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0xff}
}
