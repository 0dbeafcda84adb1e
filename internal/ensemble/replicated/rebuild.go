package replicated

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/storage/engine"
)

// A log that has lost acknowledged writes is rebuilt from a copy that has all of them, without an
// operator, under a new identity and with an epoch that is larger than any of the old log. Only
// the member with that copy rebuilds, and only when all of this is true:
//
//  1. Its store has everything up to its mark, and no mark of a member is later: neither in
//     etcd, nor at the members that respond, which must be a majority of those with a copy.
//  2. It has the owner key.
//  3. The log does not have the mark's message, and everything that the log has was written by
//     ownerships that the copy contains. So the log is a part of what the copy has.
//  4. Its epoch record was accepted at the end of the log. From then on no earlier owner can
//     append, and what 3 found is final.
//
// The decision is then stored like an operator's (acceptedValue), and carried out like one
// (accept.go): a crash in between continues it. Other members replace their copies with
// checkpoints if they have acknowledged nothing later; a copy that has is left as it is, and
// stays closed, because only an operator may give it up.

// maxEpochsAtEnd is the largest number of epoch records at the end of a log that a rebuild passes
// over. Members that could not continue have left them.
const maxEpochsAtEnd = 64

// errNotRebuilt is the reason for which a log is not rebuilt from this member's copy.
var errNotRebuilt = errors.New("log is not rebuilt from this member's copy")

// tryRebuild rebuilds the log if this member's copy has everything that was acknowledged. It
// reports whether it did.
func (s *Shard) tryRebuild() bool {
	err := s.rebuild(s.ctx)
	switch {
	case err == nil:
		return true
	case s.ctx.Err() != nil:
	case errors.Is(err, errNotRebuilt):
		s.log.Debug("shard stays closed", slog.Any("reason", err))
	default:
		s.log.Warn("rebuilding the log of the shard failed; retrying", slog.Any("error", err))
	}
	return false
}

// rebuild rebuilds the log from this member's copy, or returns errNotRebuilt.
func (s *Shard) rebuild(ctx context.Context) error {
	at, err := s.storePosition()
	if err != nil {
		return err
	}
	own := s.mark.position()
	if own.seq == 0 || own.log != at.log || at.seq < own.seq {
		return fmt.Errorf("%w: it does not have everything that this member has acknowledged", errNotRebuilt)
	}
	marks, err := s.readMarks(ctx)
	if err != nil {
		return err
	}
	if marks.log != at.log.String() {
		return fmt.Errorf("%w: it is a copy of another log", errNotRebuilt)
	}
	if void := marks.voidUntil(own.log); void > 0 && own.epoch <= void {
		return fmt.Errorf("%w: an operator has given it up", errNotRebuilt)
	}
	if err := s.hasAll(ctx, own, marks); err != nil {
		return err
	}
	// Without the owner key first: an operator cannot decide while a member has it.
	if _, _, err := s.closeLog(ctx, own, at, false); err != nil {
		return err
	}
	s.mu.Lock()
	holdersRev := s.view.holdersRev
	s.mu.Unlock()
	c, err := s.acquire(ctx, holdersRev)
	if err != nil {
		return err
	}
	if c == nil {
		return fmt.Errorf("%w: another member has the owner key", errNotRebuilt)
	}
	defer s.release(c)
	if err := s.flushStore(); err != nil { // the copy must not depend on the old log any more
		return err
	}
	epoch, end, err := s.closeLog(ctx, own, at, true)
	if err != nil {
		return err
	}
	v, err := s.storeRebuild(ctx, c, marks, at, epoch)
	if err != nil {
		return err
	}
	id, err := parseLogID(v.Log)
	if err != nil {
		return err
	}
	if err := s.continueLog(ctx, c, id, v.continued(at)); err != nil {
		return err
	}
	s.log.Warn("log of the shard had lost acknowledged messages and was rebuilt from the copy of this member",
		slog.Uint64("messages", at.seq-min(at.seq, end)), slog.Uint64("epoch", epoch))
	return nil
}

// hasAll returns nil when no mark is later than this member's own, and a majority of the members
// with a copy says so now.
func (s *Shard) hasAll(ctx context.Context, own logPosition, marks *shardMarks) error {
	all := marks.of(own.log)
	s.mu.Lock()
	holders := slices.Clone(s.view.holders)
	s.mu.Unlock()
	if holders == nil {
		holders = s.o.All
	}
	if holders == nil {
		holders = s.o.Members.Live()
	}
	responded := 0
	for _, name := range holders {
		is, err := s.stateOf(ctx, name)
		if err != nil {
			continue
		}
		responded++
		if text, err := hex.DecodeString(is.Mark); err == nil && len(text) > 0 {
			at, err := decodeLogPosition(text)
			if err != nil {
				return fmt.Errorf("decoding the position of member %q: %w", name, err)
			}
			if at.log == own.log && at.epoch > marks.voidUntil(own.log) {
				all = append(all, memberMark{member: name, at: at})
			}
		}
	}
	if 2*responded <= len(holders) {
		return fmt.Errorf("%w: %d of %d members with a copy respond", errNotRebuilt, responded, len(holders))
	}
	for _, m := range all {
		if m.at.seq > own.seq || m.at.epoch > own.epoch || m.at.seq == own.seq && m.at != own {
			return fmt.Errorf("%w: member %q has acknowledged message %d of epoch %d, and this member only message %d "+
				"of epoch %d", errNotRebuilt, m.member, m.at.seq, m.at.epoch, own.seq, own.epoch)
		}
	}
	return nil
}

// closeLog makes sure that the log has lost messages that this member's copy has and has nothing
// that the copy has not, and then, if fence is set, keeps every earlier owner from appending. It
// returns the epoch that the new log must exceed, and the end of the log.
func (s *Shard) closeLog(ctx context.Context, own, at logPosition, fence bool) (epoch, end uint64, err error) {
	st, err := findLog(ctx, &s.o, at.log.String())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return at.epoch, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reading the state of the log: %w", err)
	}
	st.id = at.log
	info := st.handle.CachedInfo()
	if st.identity() != at.log.String() {
		if info.State.Msgs > 0 {
			return 0, 0, fmt.Errorf("%w: stream %s is another log and has messages", errNotRebuilt, st.name)
		}
		return at.epoch, 0, nil
	}
	end = info.State.LastSeq
	if end >= own.seq {
		r, err := st.readGood(ctx, own.seq, func(r record) bool { return r.is(own) })
		if err == nil && r.is(own) || own.seq < info.State.FirstSeq {
			return 0, 0, fmt.Errorf("%w: the log has everything that was acknowledged", errNotRebuilt)
		}
		if err != nil && !errors.Is(err, errNoMessage) {
			return 0, 0, err
		}
	}
	if err := s.containsLog(ctx, st, info.State); err != nil || !fence {
		return 0, 0, err
	}
	var last record
	if info.State.Msgs > 0 {
		if last, err = st.read(ctx, nil, end); err != nil {
			return 0, 0, err
		}
	}
	if last.isEpoch() && last.owner == s.instance && last.epoch > at.epoch { // of an earlier attempt
		return last.epoch, end - 1, nil
	}
	w, err := newWriter(st, logPosition{
		log: at.log, seq: end, epoch: max(last.epoch, at.epoch), sum: last.sum,
	}, s.instance, s.o.Lease.Alive, s.o.LogBytes, s.o.Metrics, s.o.Unacknowledged)
	if err != nil {
		return 0, 0, err
	}
	_, err = w.begin()
	w.close(engine.ErrLogLost)
	if err != nil {
		return 0, 0, fmt.Errorf("closing the old log: %w", err)
	}
	return w.epoch, end, nil
}

// containsLog returns nil when everything in the log was written by ownerships that this member's
// copy contains. An ownership has one writer, so the log then is a part of what the copy has.
func (s *Shard) containsLog(ctx context.Context, st *stream, state jetstream.StreamState) error {
	for seq := state.LastSeq; seq >= max(1, state.FirstSeq) && state.Msgs > 0; seq-- {
		if state.LastSeq-seq >= maxEpochsAtEnd {
			return fmt.Errorf("%w: log ends with %d beginnings of ownerships", errNotRebuilt, maxEpochsAtEnd)
		}
		r, err := st.read(ctx, nil, seq)
		if err != nil {
			return err
		}
		known, ok := s.mark.epoch(r.epoch)
		switch {
		case ok && r.isEpoch() && known.seq == seq && known.sum == r.sum:
			return nil
		case r.isEpoch():
			continue // nothing was written after it
		case !ok:
			return fmt.Errorf("%w: message %d of the log is of epoch %d, which this copy does not contain",
				errNotRebuilt, seq, r.epoch)
		case known.seq < state.FirstSeq:
			return nil // the log is purged up to what all copies have
		}
		begin, err := st.read(ctx, nil, known.seq)
		if err != nil {
			return err
		}
		if !begin.isEpoch() || begin.sum != known.sum || begin.epoch != known.epoch {
			return fmt.Errorf("%w: epoch %d of the log is not the one that this copy contains", errNotRebuilt, r.epoch)
		}
		return nil
	}
	return nil
}

// storeRebuild stores the decision to rebuild the log, on the condition that this member still has
// the owner key and that nobody has decided otherwise.
func (s *Shard) storeRebuild(ctx context.Context, c *claim, marks *shardMarks, at logPosition,
	epoch uint64,
) (acceptedValue, error) {
	var id logID
	_, _ = rand.Read(id[:]) // never fails
	v := acceptedValue{
		From: s.o.Member, ExactPosition: hex.EncodeToString(at.encode()), Log: id.String(), Replaces: at.log.String(),
		Epoch: epoch, Rebuild: true,
	}
	text, err := json.Marshal(v)
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := s.o.Etcd.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(s.keys.owner), "=", c.rev),
		clientv3.Compare(clientv3.ModRevision(s.keys.log), "=", marks.logRev),
		clientv3.Compare(clientv3.ModRevision(s.keys.accepted), "=", marks.acceptedRev),
	).Then(clientv3.OpPut(s.keys.accepted, string(text))).Commit()
	if err != nil {
		return v, fmt.Errorf("storing the decision to rebuild the log: %w", err)
	}
	if !response.Succeeded {
		return v, fmt.Errorf("%w: %w", errNotRebuilt, errChanged)
	}
	return v, nil
}

// continued returns the position with which a copy continues in the new log. Its epoch is at least
// that of every record of the old one.
func (v *acceptedValue) continued(at logPosition) logPosition {
	at.epoch = max(at.epoch, v.Epoch)
	return at
}

// refetch replaces a copy of the log that was rebuilt with a checkpoint of another member. The copy
// is kept until the checkpoint is complete.
func (s *Shard) refetch(ctx context.Context) error {
	return s.bootstrap(ctx, &follower{
		store: s.store, end: &s.end, applied: &s.applied, bytes: &s.bytes, mark: s.mark,
	}, true)
}

// replicasInterval is the interval at which an owner tries to add missing replicas to its log.
const replicasInterval = 10 * time.Second

// addReplicas adds replicas to a log that was created while a server was away.
func (u *upkeeper) addReplicas(ctx context.Context, st *stream) error {
	if u.replicated || time.Since(u.replicatedAt) < replicasInterval {
		return nil
	}
	u.replicatedAt = time.Now()
	found, err := st.find(ctx)
	if err != nil {
		return fmt.Errorf("reading the number of the log's replicas: %w", err)
	}
	config, want := found.CachedInfo().Config, u.s.o.Replicas
	if config.Replicas >= want {
		u.replicated = true
		return nil
	}
	before := config.Replicas
	config.Replicas = want
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = st.js.UpdateStream(ctx, config)
	if isNoPeers(err) {
		return nil // the server is still away
	}
	if err != nil {
		return fmt.Errorf("adding replicas to the log: %w", err)
	}
	u.s.log.Info("log of the shard has all its replicas again", slog.Int("before", before), slog.Int("now", want))
	return nil
}
