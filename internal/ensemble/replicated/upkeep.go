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

	"freshet/internal/storage/engine"
)

const (
	upkeepEvery = time.Second
	// flushBytes is the number of applied bytes of the log after which a store is flushed.
	flushBytes = 32 << 20
	// reportEvery is the interval at which a member publishes its position while it changes.
	reportEvery = 3 * time.Second
	// caughtUp is the largest number of messages that a copy may lag to count as caught up.
	caughtUp = 256
	// reportLag is the largest age of a published position. Under load the published position
	// lags far behind the log, although the copy does not.
	reportLag = reportEvery + 2*upkeepEvery
)

// upkeeper is the state of the upkeep goroutine.
type upkeeper struct {
	s         *Shard
	flushedAt time.Time
	bytes     int64 // applied at the last flush
	saidAt    time.Time
	led       *writer // of the ownership that presence and ends belong to
	seen      presence
	caught    time.Time // since when the preferred owner has caught up
	// ends of the log, oldest first: the last one that copies have had the time to report, and all
	// newer ones
	ends   []logEnd
	purged uint64
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
	var undone grumble
	ticker := time.NewTicker(upkeepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		st, w := s.stream, s.writer
		s.mu.Unlock()
		if st == nil {
			continue
		}
		if err := u.look(s.ctx, st, w); err != nil && s.ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) {
			s.log.LogAttrs(s.ctx, undone.level(), "upkeep of the shard failed; retrying", slog.Any("error", err))
		}
	}
}

func (u *upkeeper) look(ctx context.Context, st *stream, w *writer) error {
	s := u.s
	at, err := s.mark()
	if err != nil {
		return err
	}
	if w != nil {
		s.applied.Store(max(s.applied.Load(), at.position))
	}
	if err := errors.Join(u.flush(at), s.checkpoints.sweep(unusedFor)); err != nil {
		return err
	}
	s.mu.Lock()
	now, said := copyValue{Applied: at.position, Flushed: s.flushed, Follows: true, Resigns: s.resigns}, s.said
	s.mu.Unlock()
	if now != said && (now.Flushed != said.Flushed || !said.Follows || time.Since(u.saidAt) > reportEvery) {
		if err := s.report(ctx, now); err != nil {
			return err
		}
		u.saidAt = time.Now()
	}
	if w != u.led {
		u.led, u.seen, u.ends, u.purged = w, presence{}, nil, 0 // observations of an earlier ownership are outdated
	}
	if w == nil {
		return nil
	}
	return u.lead(ctx, st, w)
}

// flush flushes the store when flushBytes were applied or FlushEvery has passed since the
// last flush.
func (u *upkeeper) flush(at mark) error {
	s := u.s
	s.mu.Lock()
	flushed := s.flushed
	writer := s.writer
	s.mu.Unlock()
	bytes := s.bytes.Load()
	if writer != nil {
		bytes = writer.appended.Load()
	}
	if at.position == flushed || bytes-u.bytes < flushBytes && bytes >= u.bytes &&
		time.Since(u.flushedAt) < s.o.FlushEvery {
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
	s.flushed = max(s.flushed, at.position)
	s.mu.Unlock()
	return nil
}

// report publishes the status of this member's copy in etcd.
func (s *Shard) report(ctx context.Context, c copyValue) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	if _, err := s.o.Etcd.Put(ctx, s.keys.copies+s.o.Member, string(text)); err != nil {
		return fmt.Errorf("publishing the status of the copy: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = c
	return nil
}

// lead performs the tasks of the owner.
func (u *upkeeper) lead(ctx context.Context, st *stream, w *writer) error {
	s := u.s
	state, err := st.state(ctx)
	if err != nil {
		return err
	}
	s.end.Store(max(s.end.Load(), state.LastSeq))
	w.bytes.Store(int64(state.Bytes))
	live := s.o.Members()
	least, copies := u.copies(live)
	u.seen.see(slices.Concat(s.o.All, slices.Collect(maps.Keys(copies))), live)
	reported := u.reported(state.LastSeq)
	if err := errors.Join(u.dropGone(ctx, live), u.place(ctx, live, copies, reported)); err != nil {
		return err
	}
	// The last message that all copies have flushed is kept, because a store verifies its
	// position with it.
	if least > state.FirstSeq && least > u.purged {
		ctx, cancel := context.WithTimeout(ctx, callPatience)
		defer cancel()
		if err := st.handle.Purge(ctx, jetstream.WithPurgeSequence(least)); err != nil {
			return fmt.Errorf("purging the log up to message %d: %w", least, err)
		}
		u.purged = least
	}
	u.prefer(copies, reported)
	return nil
}

// reported records the end of the log, and returns its end at the last moment that all
// copies have had the time to report.
func (u *upkeeper) reported(end uint64) uint64 {
	now := time.Now()
	u.ends = append(u.ends, logEnd{now, end})
	for len(u.ends) > 1 && now.Sub(u.ends[1].at) >= reportLag {
		u.ends = u.ends[1:]
	}
	return u.ends[0].seq
}

// copies returns the copies of the members that should have one, and the position up to
// which all of them are flushed.
func (u *upkeeper) copies(live []string) (least uint64, copies map[string]copyValue) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	least, copies = s.flushed, make(map[string]copyValue, len(s.view.copies))
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

// dropGone removes the status of copies of members that have been absent for GoneAfter, and
// of members that should have no copy.
func (u *upkeeper) dropGone(ctx context.Context, live []string) error {
	s := u.s
	s.mu.Lock()
	said, places := maps.Clone(s.view.copies), slices.Clone(s.view.places)
	s.mu.Unlock()
	for name := range said {
		leftover := places != nil && !slices.Contains(places, name)
		gone := !slices.Contains(live, name) && name != s.o.Member && u.seen.gone(name, s.o.GoneAfter)
		if !leftover && !gone {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, callPatience)
		_, err := s.o.Etcd.Delete(ctx, s.keys.copies+name)
		cancel()
		if err != nil {
			return fmt.Errorf("removing the status of the copy on member %q: %w", name, err)
		}
		if !leftover {
			s.log.Warn("log is no longer kept for a member that is gone; its copy starts from a checkpoint when "+
				"it returns",
				slog.String("member", name),
				slog.Duration("gone", time.Since(u.seen.away[name]).Round(time.Second)))
		}
	}
	return nil
}

// prefer hands the shard to its preferred member after that member has had a copy that has
// caught up for Options.Settle.
func (u *upkeeper) prefer(copies map[string]copyValue, end uint64) {
	s := u.s
	name := s.preferred()
	c, ok := copies[name]
	if name == s.o.Member || name == "" || !ok || !c.Follows || c.Applied+caughtUp < end {
		u.caught = time.Time{}
		return
	}
	if u.caught.IsZero() {
		u.caught = time.Now()
	}
	if time.Since(u.caught) < s.o.Settle {
		return
	}
	u.caught = time.Time{}
	s.yield(s.o.Settle)
	s.askToGiveUp()
}
