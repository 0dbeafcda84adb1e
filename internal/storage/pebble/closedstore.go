package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// closedStore is a store that is opened read-only; no other process has it open.
type closedStore struct {
	db          *cdb.DB
	dir         string
	era         uint64
	format      uint64
	logPosition []byte
	journals    map[uint32]string
	numbers     map[uint32]uint32 // new numbers of the journals by their old ones; nil keeps them
}

// openReadOnly opens a store read-only, with a logger that discards everything. The caller
// closes db.
func openReadOnly(fs vfs.FS, dir string) (*store, error) {
	s := &store{log: slog.New(slog.DiscardHandler), fs: fs, dir: dir, failed: make(chan struct{})}
	s.tables.s = s
	var err error
	s.db, err = openPebble(dir, &cdb.Options{FS: fs, ReadOnly: true, Logger: storeLogger{s}})
	return s, err
}

// openClosed opens a store read-only.
func openClosed(dir string) (*closedStore, error) {
	if _, err := checkIntact(vfs.Default, dir, true); err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	s, err := openReadOnly(vfs.Default, dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, storeError(err))
	}
	r := &closedStore{db: s.db, dir: dir, journals: map[uint32]string{}}
	if err := r.load(s); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", dir, err), s.db.Close())
	}
	return r, nil
}

func (r *closedStore) load(s *store) error {
	for _, number := range []struct {
		key  byte
		into *uint64
	}{{keyFormat, &r.format}, {keyEraNow, &r.era}} {
		body, err := s.get([]byte{number.key})
		if errors.Is(err, cdb.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		u := unpack(body)
		if *number.into = u.Uvarint(); u.Err() != nil {
			return u.Err()
		}
	}
	if r.format > formatVersion {
		return newerFormat(r.format)
	}
	var err error
	if r.logPosition, err = s.get([]byte{keyLogPosition}); err != nil && !errors.Is(err, cdb.ErrNotFound) {
		return err
	}
	return s.scan([]byte{keyJournal}, func(key, body []byte) error {
		u := unpack(body)
		r.journals[uint32(u.Uvarint())] = string(key[1:]) //nolint:gosec // journals have 32 bits
		return u.Err()
	})
}

func (r *closedStore) close() error { return r.db.Close() }

// renumber assigns new numbers to the journals, from next on, and returns the next unused
// number.
func (r *closedStore) renumber(next uint32) uint32 {
	r.numbers = make(map[uint32]uint32, len(r.journals))
	for number := range r.journals {
		r.numbers[number] = next
		next++
	}
	return next
}

// renumbered returns a key of a journal with the journal's new number, and its value.
func (r *closedStore) renumbered(key, value []byte) (newKey, newValue []byte, err error) {
	if r.numbers == nil {
		return key, value, nil
	}
	body, err := checkChecksum(key, value)
	if err != nil {
		return nil, nil, err
	}
	key = bytes.Clone(key)
	if key[0] == keyJournal {
		u := unpack(body)
		var p wire.Writer
		p.Uvarint(uint64(r.numbers[uint32(u.Uvarint())])) //nolint:gosec // journals have 32 bits
		return key, addChecksum(key, p), u.Err()
	}
	binary.BigEndian.PutUint32(key[1:], r.numbers[binary.BigEndian.Uint32(key[1:])])
	return key, addChecksum(key, body), nil
}

// keyOwner is the topic or journal that a key belongs to.
type keyOwner struct {
	unowned bool // the key belongs to the store itself, or to a journal that no longer exists
	journal bool
	name    string
	topic   engine.TopicID
}

func (r *closedStore) ownerOf(key []byte) (keyOwner, error) {
	topicAt := func(i int) (keyOwner, error) {
		if len(key) < i+8 {
			return keyOwner{}, corrupt(key, "key is too short")
		}
		return keyOwner{topic: engine.TopicID(binary.BigEndian.Uint64(key[i:]))}, nil
	}
	switch key[0] {
	case keyFormat, keyEraNow, keyLogPosition:
		return keyOwner{unowned: true}, nil
	case keyTopic:
		return topicAt(1)
	case keyMessage:
		return topicAt(5)
	case keyDue:
		return topicAt(9)
	case keyJournal:
		return keyOwner{journal: true, name: string(key[1:])}, nil
	case keyRecord, keySnapshot, keyChunk:
		if len(key) < 5 {
			return keyOwner{}, corrupt(key, "key is too short")
		}
		name, ok := r.journals[binary.BigEndian.Uint32(key[1:])]
		return keyOwner{journal: true, name: name, unowned: !ok}, nil
	}
	return keyOwner{}, corrupt(key, "key is of an unknown kind")
}

// Journals returns the names of the journals of a store. No process may have the store open.
func Journals(dir string) (_ []string, err error) {
	r, err := openClosed(dir)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Values(r.journals)), r.close()
}
