package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc64"

	"freshet/internal/storage/engine"
)

// Survey summarizes the content of a store in figures that can be compared with those of
// a copy.
type Survey struct {
	Topics      map[engine.TopicID]TopicSurvey
	Journals    map[string]JournalSurvey
	LogPosition []byte // position in the external log; nil when the store has none
}

// TopicSurvey summarizes a topic.
type TopicSurvey struct {
	Messages      uint64
	Bytes         int64
	Subscriptions int
	First, Last   engine.MessageID // of its messages
	// Sum is a checksum of all keys and values of the topic: messages, configuration,
	// subscriptions with their acknowledgements, producers.
	Sum uint64
}

// JournalSurvey summarizes a journal.
type JournalSurvey struct {
	Snapshot uint64 // position of its snapshot
	Records  uint64
	Last     uint64 // position of its last record
	Largest  int    // bytes of the largest record
	Sum      uint64
}

var ecma = crc64.MakeTable(crc64.ECMA)

// TakeSurvey reads a whole store and returns its summary. No process may have the store open,
// and Take does not change it.
func TakeSurvey(ctx context.Context, dir string, progress func(done, total int64)) (_ *Survey, err error) {
	r, err := openClosed(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	size, err := r.db.EstimateDiskUsage([]byte{0}, []byte{0xff})
	if err != nil {
		return nil, storeError(err)
	}
	s := &surveyor{r: r, latest: map[string]uint64{}, out: &Survey{
		Topics: map[engine.TopicID]TopicSurvey{}, Journals: map[string]JournalSurvey{}, LogPosition: r.logPosition,
	}}
	all, err := newMergedIterator([]*closedStore{r}, nil)
	if err != nil {
		return nil, err
	}
	defer all.close()
	seen := 0
	for all.next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key, value, err := all.current()
		if err != nil {
			return nil, err
		}
		if err := s.add(key, value); err != nil {
			return nil, err
		}
		if seen += len(value); seen > copyProgressBytes {
			seen = 0
			if done, err := r.db.EstimateDiskUsage([]byte{0}, key); err == nil {
				progress(int64(done), int64(size)) //nolint:gosec // disk sizes fit into 63 bits
			}
		}
	}
	return s.out, all.err()
}

type surveyor struct {
	r      *closedStore
	out    *Survey
	latest map[string]uint64 // id of each journal's latest snapshot
}

func (s *surveyor) add(key, value []byte) error {
	is, err := s.r.ownerOf(key)
	if err != nil || is.unowned {
		return err
	}
	if is.journal {
		return s.addJournal(is.name, key, value)
	}
	id := is.topic
	t := s.out.Topics[id]
	t.Sum = crc64.Update(crc64.Update(t.Sum, ecma, key), ecma, value)
	switch {
	case key[0] == keyMessage:
		head, err := verify(key, value)
		if err == nil {
			t.Messages += head.count
		} else {
			t.Messages++ // a damaged message; consumers get an error for it
		}
		t.Bytes += int64(len(value))
		last := engine.MessageID{
			Topic:     id,
			Partition: int32(binary.BigEndian.Uint32(key[13:])), //nolint:gosec // written as an int32
			Entry:     messageEntry(key),
		}
		first := last
		if err == nil {
			first.Entry -= head.count - 1
		}
		if t.First == (engine.MessageID{}) && t.Last == (engine.MessageID{}) || before(first, t.First) {
			t.First = first
		}
		if before(t.Last, last) {
			t.Last = last
		}
	case key[0] == keyTopic && len(key) > topicPrefixLen && key[topicPrefixLen] == ofSub:
		t.Subscriptions++
	}
	s.out.Topics[id] = t
	return nil
}

// before reports whether a sorts before b: by partition, then by entry.
func before(a, b engine.MessageID) bool {
	return a.Partition < b.Partition || a.Partition == b.Partition && a.Entry < b.Entry
}

// addJournal adds a key of a journal. It ignores the journal's number, which differs
// between stores.
func (s *surveyor) addJournal(name string, key, value []byte) error {
	body, err := checkChecksum(key, value)
	if err != nil {
		return err
	}
	j := s.out.Journals[name]
	switch key[0] {
	case keySnapshot:
		u := unpack(body)
		s.latest[name], j.Snapshot = u.Uvarint(), u.Uvarint()
		if u.Err() != nil {
			return u.Err()
		}
		j.Last = max(j.Last, j.Snapshot)
		j.Sum = crc64.Update(j.Sum, ecma, body)
	case keyRecord:
		position := binary.BigEndian.Uint64(key[5:])
		j.Records, j.Last, j.Largest = j.Records+1, max(j.Last, position), max(j.Largest, len(body))
		j.Sum = crc64.Update(crc64.Update(j.Sum, ecma, key[5:]), ecma, body)
	case keyChunk:
		if binary.BigEndian.Uint64(key[5:]) == s.latest[name] {
			j.Sum = crc64.Update(crc64.Update(j.Sum, ecma, key[5:]), ecma, body)
		}
	}
	s.out.Journals[name] = j
	return nil
}
