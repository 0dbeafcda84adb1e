package replicated

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// decision is an accepted loss, and how it concerns this member.
type decision struct {
	acceptedValue
	id    logID
	at    logPosition // of this member's store
	mine  string      // the same, encoded
	begun bool        // the log to continue with exists
}

// readAccepted reads the accepted loss, nil if there is none.
func (s *Shard) readAccepted(ctx context.Context) (*decision, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := s.o.Etcd.Txn(ctx).Then(clientv3.OpGet(s.keys.accepted), clientv3.OpGet(s.keys.log)).Commit()
	if err != nil {
		return nil, err
	}
	accepted, known := found.Responses[0].GetResponseRange().Kvs, found.Responses[1].GetResponseRange().Kvs
	if len(accepted) == 0 {
		return nil, nil
	}
	var d decision
	if err := json.Unmarshal(accepted[0].Value, &d.acceptedValue); err != nil {
		return nil, fmt.Errorf("decoding the accepted loss: %w", err)
	}
	if d.at, err = s.storePosition(); err != nil {
		return nil, err
	}
	d.mine = hex.EncodeToString(d.at.encode())
	d.begun = len(known) > 0 && string(known[0].Value) == d.Log
	d.id, err = parseLogID(d.Log)
	return &d, err
}

// beginAccepted begins the log that an operator has decided on, if this member has to and has not
// done it yet. It reports whether it did anything.
func (s *Shard) beginAccepted(ctx context.Context) (done bool, err error) {
	d, err := s.readAccepted(ctx)
	if err != nil || d == nil || d.begun || d.From != s.o.Member ||
		d.mine != d.ExactPosition && d.at.log != d.id {
		return false, err
	}
	return true, s.beginLog(ctx, d.id, d.continued(d.at))
}

// applyAccepted carries out this member's part of an accepted loss, if there is one. It is called
// when the copy does not match the log. Every step is idempotent, and the copy does not
// match the log until all steps are done. It reports whether it did anything.
func (s *Shard) applyAccepted(ctx context.Context) (done bool, err error) {
	if done, err := s.beginAccepted(ctx); done || err != nil {
		return done, err
	}
	d, err := s.readAccepted(ctx)
	if err != nil || d == nil || !d.begun {
		return false, err // without it, the new log does not exist yet
	}
	switch {
	case s.endLost: // the copy matches the log
	case d.ExactPosition != "" && d.mine == d.ExactPosition:
		return true, s.rebindStore(d.id, d.at)
	case d.Rebuild && d.includesMark(d.at, s.mark.position()):
		return true, s.refetch(ctx)
	case d.Rebuild:
	case d.Discard[s.o.Member] == d.mine, d.includes(d.at):
		return true, s.discardCopy()
	}
	return false, nil
}

// includesMark reports whether the copy that a log was rebuilt from includes everything that a
// member has acknowledged, given its store and its mark.
func (v *acceptedValue) includesMark(at, acknowledged logPosition) bool {
	text, err := hex.DecodeString(v.ExactPosition)
	if err != nil {
		return false
	}
	kept, err := decodeLogPosition(text)
	if err != nil || at.seq > 0 && at.log.String() != v.Replaces {
		return false
	}
	return acknowledged.log.String() != v.Replaces || acknowledged.seq <= kept.seq && acknowledged.epoch <= kept.epoch
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
	return s.continueLog(ctx, c, id, at)
}

// continueLog replaces the log with a new one that continues this member's copy, which is flushed.
func (s *Shard) continueLog(ctx context.Context, c *claim, id logID, at logPosition) error {
	call, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	st := newSuccessor(&s.o, id)
	if err := removeStreams(call, &s.o, st.name); err != nil {
		return fmt.Errorf("removing the old log: %w", err)
	}
	created, err := st.createFrom(call, &s.o, id, at.seq+1)
	if isNoPeers(err) { // a server is away: the others suffice until it is back (upkeeper.addReplicas)
		few := s.o
		few.Replicas = s.o.Replicas/2 + 1
		var fewCancel context.CancelFunc
		call, fewCancel = context.WithTimeout(ctx, leaderTimeout)
		defer fewCancel()
		created, err = st.createFrom(call, &few, id, at.seq+1)
	}
	if err != nil {
		return fmt.Errorf("creating a new log: %w", err)
	}
	if got := created.CachedInfo().Config.Metadata[metaLog]; got != id.String() {
		return fmt.Errorf("creating a new log: stream %s is log %s already", st.name, got)
	}
	if err := s.rebindStore(id, at); err != nil {
		return err
	}
	response, err := s.o.Etcd.Txn(call).If(clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", c.rev)).
		Then(clientv3.OpPut(s.keys.log, id.String())).Commit()
	if err != nil {
		return fmt.Errorf("storing the identity of the new log: %w", err)
	}
	if !response.Succeeded {
		return errNoClaim
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
	if err := s.store.Flush(); err != nil {
		return err
	}
	s.mark.reset(at) // marks of another log do not count
	return nil
}

func (s *Shard) flushStore() error {
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	return s.store.Flush()
}

// discardCopy replaces the copy with an empty one.
func (s *Shard) discardCopy() error {
	s.lockToClose()
	defer s.storeMu.Unlock()
	err := s.store.Close()
	s.store = nil
	if err = errors.Join(err, s.disk.RemoveStore(s.o.Dir), s.disk.Remove(s.fetchDir())); err != nil {
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
