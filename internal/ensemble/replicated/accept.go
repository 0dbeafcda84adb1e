package replicated

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go/jetstream"
)

// applyAccepted carries out this member's part of an accepted loss, if there is one. It is called
// when the copy does not match the log. Every step is idempotent, and the copy does not
// match the log until all steps are done. It reports whether it did anything.
func (s *Shard) applyAccepted(ctx context.Context) (done bool, err error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := s.o.Etcd.Get(call, s.keys.accepted)
	if err != nil || len(found.Kvs) == 0 {
		return false, err
	}
	var v acceptedValue
	if err := json.Unmarshal(found.Kvs[0].Value, &v); err != nil {
		return false, fmt.Errorf("decoding the accepted loss: %w", err)
	}
	at, err := s.storePosition()
	if err != nil {
		return false, err
	}
	mine := hex.EncodeToString(at.encode())
	id, err := parseLogID(v.Log)
	if err != nil {
		return false, err
	}
	if v.From == s.o.Member && (mine == v.ExactPosition || at.log == id) {
		return true, s.beginLog(ctx, id, at)
	}
	known, err := s.o.Etcd.Get(call, s.keys.log)
	if err != nil {
		return false, err
	}
	if len(known.Kvs) == 0 || string(known.Kvs[0].Value) != v.Log {
		return false, nil // the new log does not exist yet
	}
	switch {
	case v.ExactPosition != "" && mine == v.ExactPosition:
		return true, s.rebindStore(id, at)
	case v.Discard[s.o.Member] == mine, v.includes(at):
		return true, s.discardCopy()
	}
	return false, nil
}

// includes reports whether the copy that the shard continues from includes everything in a store
// whose member was absent when the loss was accepted.
func (v *acceptedValue) includes(at logPosition) bool {
	text, err := hex.DecodeString(v.ExactPosition)
	if err != nil || v.ExactPosition == "" || at.log.String() != v.Replaces {
		return false
	}
	kept, err := decodeLogPosition(text)
	return err == nil && (at.epoch < kept.epoch || at.epoch == kept.epoch && at.seq <= kept.seq)
}

// beginLog creates a new log that continues this member's copy.
func (s *Shard) beginLog(ctx context.Context, id logID, at logPosition) error {
	s.mu.Lock()
	holdersRev := s.view.holdersRev
	s.mu.Unlock()
	c, err := s.acquire(ctx, holdersRev) // a member that has become the owner meanwhile keeps its log
	if err != nil {
		return err
	}
	if c == nil {
		return errors.New("another member has the owner key, so the accepted loss is not carried out")
	}
	defer s.release(c)
	if err := s.flushStore(); err != nil { // the old log is needed until the store is durable
		return err
	}
	call, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	st := &stream{js: s.o.JetStream, name: streamName(&s.o), subject: streamSubject(&s.o)}
	old, err := s.o.JetStream.Stream(call, st.name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if err == nil && old.CachedInfo().Config.Metadata[metaLog] != id.String() {
		if err := s.o.JetStream.DeleteStream(call, st.name); err != nil {
			return fmt.Errorf("removing the old log: %w", err)
		}
	}
	if _, err := st.createFrom(call, &s.o, id, at.seq+1); err != nil {
		return fmt.Errorf("creating a new log: %w", err)
	}
	if err := s.rebindStore(id, at); err != nil {
		return err
	}
	if _, err := s.o.Etcd.Put(call, s.keys.log, id.String()); err != nil {
		return fmt.Errorf("storing the identity of the new log: %w", err)
	}
	s.log.Warn("shard continues from this member's copy with a new log", slog.Uint64("message", at.seq),
		slog.Uint64("epoch", at.epoch))
	return nil
}

// rebindStore makes the store a copy of another log, at the same position.
func (s *Shard) rebindStore(id logID, at logPosition) error {
	at.log = id
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	if err := s.store.Apply(nil, at.encode()); err != nil {
		return err
	}
	s.end.Store(0)
	return s.store.Flush()
}

func (s *Shard) flushStore() error {
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	return s.store.Flush()
}

// discardCopy replaces the copy with an empty one.
func (s *Shard) discardCopy() error {
	s.storeMu.Lock()
	defer s.storeMu.Unlock()
	err := s.store.Close()
	s.store = nil
	if err = errors.Join(err, removeCopy(s.o.Dir), os.RemoveAll(s.fetchDir())); err != nil {
		return fmt.Errorf("removing a discarded copy: %w", err)
	}
	if err := s.openLocked(); err != nil {
		return err
	}
	s.applied.Store(0)
	s.end.Store(0)
	s.log.Warn("copy of the shard on this member was discarded, as an operator has accepted; it starts empty")
	return nil
}
