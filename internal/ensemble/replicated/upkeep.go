package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

const (
	upkeepInterval = time.Second
	// flushBytes is the number of applied bytes of the log after which a store is flushed.
	flushBytes = 32 << 20
	// reportInterval is the interval at which a member publishes its position while it changes.
	reportInterval = 3 * time.Second
	// maxCaughtUpLag is the largest number of messages that a copy may lag to count as caught up.
	maxCaughtUpLag = 256
	// reportLag is the largest age of a published position. Under load the published position
	// lags far behind the log, although the copy does not.
	reportLag = reportInterval + 2*upkeepInterval
)

// upkeeper is the state of the upkeep goroutine.
type upkeeper struct {
	s             *Shard
	flushedAt     time.Time
	bytes         int64 // applied at the last flush
	publishedAt   time.Time
	writer        *writer // of the ownership that presence and ends belong to
	presence      presence
	caughtUpSince time.Time // since when the preferred owner has caught up
	// ends of the log, oldest first: the last one that copies have had the time to report, and all
	// newer ones
	ends   []logEnd
	purged uint64
	// replicated is whether the log has all its replicas, and replicatedAt when that was last checked.
	replicated   bool
	replicatedAt time.Time
}

// logEnd is the end of the log at a time.
type logEnd struct {
	at  time.Time
	seq uint64
}

// upkeep flushes the store and publishes its position in etcd. On the owner it also purges
// the log and hands the shard to its preferred member.
func (s *Shard) upkeep() {
	u := &upkeeper{s: s, flushedAt: time.Now()}
	warnings := lograte.New(retryWarnings)
	for range retry.Every(s.ctx, upkeepInterval) {
		s.mu.Lock()
		st, w := s.stream, s.writer
		s.mu.Unlock()
		if st == nil {
			continue
		}
		if err := u.tick(s.ctx, st, w); err != nil && s.ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) {
			s.log.LogAttrs(s.ctx, warnings.Level("upkeep"), "upkeep of the shard failed; retrying",
				slog.Any("error", err))
		}
	}
}

func (u *upkeeper) tick(ctx context.Context, st *stream, w *writer) error {
	s := u.s
	at, err := s.storePosition()
	if err != nil {
		return err
	}
	if w != nil {
		s.applied.Store(max(s.applied.Load(), at.seq))
	}
	if err := errors.Join(u.flush(at), s.mark.sync(), s.checkpoints.sweep(s.disk, unusedTimeout)); err != nil {
		return err
	}
	s.mu.Lock()
	now, published := s.countedLocked(replicaStatus{
		Applied: at.seq, Flushed: s.flushed, InSync: true, Resigning: s.resigning,
	}), s.published
	s.mu.Unlock()
	late := time.Since(u.publishedAt) > reportInterval
	if now != published && (now.Flushed != published.Flushed || now.InSync != published.InSync || late) ||
		(late || w != nil) && s.markChanged() {
		if err := s.publishStatus(ctx, now); err != nil {
			return err
		}
		u.publishedAt = time.Now()
	}
	if w != u.writer {
		// observations of an earlier ownership are outdated
		u.writer, u.presence, u.ends, u.purged, u.replicated = w, presence{}, nil, 0, false
	}
	if w == nil {
		return nil
	}
	return u.ownerTick(ctx, st, w)
}

// flush flushes the store when flushBytes were applied or FlushInterval has passed since the
// last flush.
func (u *upkeeper) flush(at logPosition) error {
	s := u.s
	s.mu.Lock()
	flushed := s.flushed
	writer := s.writer
	s.mu.Unlock()
	bytes := s.bytes.Load()
	if writer != nil {
		bytes = writer.appended.Load()
	}
	if at.seq == flushed || bytes-u.bytes < flushBytes && bytes >= u.bytes &&
		time.Since(u.flushedAt) < s.o.FlushInterval {
		return nil
	}
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	if s.store == nil {
		return engine.ErrClosed
	}
	if err := s.store.Flush(); err != nil {
		return err
	}
	u.bytes, u.flushedAt = bytes, time.Now()
	s.mu.Lock()
	s.flushed = max(s.flushed, at.seq)
	s.mu.Unlock()
	return nil
}

// publishStatus publishes the status of this member's copy, and its mark, in etcd.
func (s *Shard) publishStatus(ctx context.Context, c replicaStatus) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ops, publishedMark := s.withMark(clientv3.OpPut(s.keys.copies+s.o.Member, string(text)))
	if _, err := s.o.Etcd.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("publishing the status of the copy: %w", err)
	}
	publishedMark()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = c
	return nil
}

// ownerTick performs the tasks of the owner.
func (u *upkeeper) ownerTick(ctx context.Context, st *stream, w *writer) error {
	s := u.s
	state, err := st.state(ctx)
	if err != nil {
		return err
	}
	s.end.Store(max(s.end.Load(), state.LastSeq))
	w.bytes.Store(int64(state.Bytes))
	live := s.o.Members.Live()
	least, copies := u.copies(live)
	u.presence.observe(slices.Concat(s.o.All, slices.Collect(maps.Keys(copies))), live)
	reported := u.reportedEnd(state.LastSeq)
	if err := errors.Join(u.removeAbsent(ctx, live), u.adjustHolders(ctx, live, copies, reported)); err != nil {
		return err
	}
	// The last message that all copies have flushed is kept, because a store verifies its
	// position with it.
	if least > state.FirstSeq && least > u.purged {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := st.handle.Purge(ctx, jetstream.WithPurgeSequence(least)); err != nil {
			return fmt.Errorf("purging the log up to message %d: %w", least, err)
		}
		u.purged = least
	}
	u.handToPreferred(copies, reported)
	return u.addReplicas(ctx, st)
}

// reportedEnd records the end of the log, and returns its end at the last moment that all
// copies have had the time to report.
func (u *upkeeper) reportedEnd(end uint64) uint64 {
	now := time.Now()
	u.ends = append(u.ends, logEnd{now, end})
	for len(u.ends) > 1 && now.Sub(u.ends[1].at) >= reportLag {
		u.ends = u.ends[1:]
	}
	return u.ends[0].seq
}

// copies returns the copies of the members that should have one, and the position up to
// which all of them are flushed.
func (u *upkeeper) copies(live []string) (least uint64, copies map[string]replicaStatus) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	least = s.countedLocked(replicaStatus{Flushed: s.flushed}).Flushed
	copies = make(map[string]replicaStatus, len(s.view.copies))
	for name, c := range s.view.copies {
		if !s.view.holds(name) {
			continue
		}
		copies[name] = c
		if name != s.o.Member {
			least = min(least, c.Flushed)
		}
	}
	for _, name := range live {
		if _, ok := copies[name]; !ok && s.view.holds(name) {
			least = 0 // a live member has not published its status yet
		}
	}
	return least, copies
}

// removeAbsent removes the status of copies of members that have been absent for GoneAfter, and
// of members that should have no copy.
func (u *upkeeper) removeAbsent(ctx context.Context, live []string) error {
	s := u.s
	s.mu.Lock()
	published, holders := maps.Clone(s.view.copies), slices.Clone(s.view.holders)
	s.mu.Unlock()
	for name := range published {
		leftover := holders != nil && !slices.Contains(holders, name)
		gone := !slices.Contains(live, name) && name != s.o.Member && u.presence.absentFor(name, s.o.GoneAfter)
		if !leftover && !gone {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := s.o.Etcd.Delete(ctx, s.keys.copies+name)
		cancel()
		if err != nil {
			return fmt.Errorf("removing the status of the copy on member %q: %w", name, err)
		}
		if !leftover {
			s.log.Warn("log is no longer kept for a member that is gone; its copy starts from a checkpoint when "+
				"it returns",
				slog.String("member", name),
				slog.Duration("gone", time.Since(u.presence.absentSince[name]).Round(time.Second)))
		}
	}
	return nil
}

// handToPreferred hands the shard to its preferred member after that member has had a copy that has
// caught up for Options.Settle.
func (u *upkeeper) handToPreferred(copies map[string]replicaStatus, end uint64) {
	s := u.s
	name := s.preferred()
	c, ok := copies[name]
	if name == s.o.Member || name == "" || !ok || !c.InSync || c.Applied+maxCaughtUpLag < end {
		u.caughtUpSince = time.Time{}
		return
	}
	if u.caughtUpSince.IsZero() {
		u.caughtUpSince = time.Now()
	}
	if time.Since(u.caughtUpSince) < s.o.Settle {
		return
	}
	u.caughtUpSince = time.Time{}
	s.postponeCampaign(s.o.Settle)
	s.requestHandOver()
}
