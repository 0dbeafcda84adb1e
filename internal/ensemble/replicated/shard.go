package replicated

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/lograte"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Shard is this member's view of a shard: its copy, and its engine while this member is the
// owner.
type Shard struct {
	o        Options
	disk     pebble.Disk // of the store
	log      *slog.Logger
	instance string // identifies this opening of the shard
	keys     keys

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// candidacy ends when the member shuts down: it does not take over the shard any more.
	candidacy context.Context
	resign    context.CancelFunc

	applied atomic.Uint64
	end     atomic.Uint64
	bytes   atomic.Int64 // of the log, applied since the shard was opened
	copies  atomic.Int64 // number of members that should have a copy; 0 for all

	// storeMu protects store; see the package comment.
	storeMu sync.RWMutex
	store   *pebble.Store // nil while it is closed

	checkpoints checkpoints
	mark        *mark // set by Open

	problems   lograte.Limiter // logs a problem of the copy once
	mismatched bool            // copy and log did not match at the last attempt; used by the run goroutine only
	endLost    bool            // so, but the copy matches the log that is left; used by the run goroutine only
	// acceptedTried is the revision of the last decision of an operator that tryBeginAccepted has
	// looked at; used by the run goroutine only.
	acceptedTried int64
	damage        *copyDamage      // of the copy, until it is replaced; used by the run goroutine only
	healLines     *lograte.Limiter // one line a minute about a copy that is not replaced, or not offered

	mu               sync.Mutex // protects the following fields; a leaf lock
	role             Role
	err              error
	stream           *stream
	engine           *pebble.Engine
	writer           *writer
	view             shardView
	flushed          uint64
	verified         bool          // the tables of the store are known to be intact
	published        replicaStatus // as last published in etcd
	publishedMark    logPosition   // the mark as last published
	suspect          suspectCopy   // whether the content of the copy differs from the others
	summed           summedStep    // the last step of a comparison that this member has worked on
	resigning        bool          // the member shuts down and must not campaign again
	campaignAfter    time.Time     // the member must not campaign before
	changed          chan struct{} // closed and replaced when one of these fields changes
	handOverRequests chan struct{} // requests that the owner hand over; set once, capacity 1
}

// Open opens the member's copy. It follows the log and campaigns for the ownership in the
// background; Status reports problems.
func Open(ctx context.Context, o Options) (*Shard, error) {
	o = o.withDefaults()
	if err := o.Store.Disk().Remove(o.Dir + "-checkpoints"); err != nil { // left by an earlier process
		return nil, fmt.Errorf("opening shard %d of cluster %s: %w", o.Number, o.Cluster, err)
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	s := &Shard{
		o: o, disk: o.Store.Disk(), role: Starting, keys: o.keys(),
		log:      o.Logger.With(slog.Int("shard", o.Number)),
		instance: o.Member + "/" + hex.EncodeToString(random[:]),
		changed:  make(chan struct{}), handOverRequests: make(chan struct{}, 1),
		healLines: lograte.New(lograte.Policy{Interval: time.Minute}),
	}
	s.view.copies, s.view.sums = make(map[string]replicaStatus), make(map[string]contentSum)
	s.SetCopies(o.Copies)
	if err := s.openCopy(ctx); err != nil {
		return nil, fmt.Errorf("opening shard %d of cluster %s: %w", o.Number, o.Cluster, err)
	}
	if err := s.openMark(ctx); err != nil {
		if s.store != nil {
			err = errors.Join(err, s.store.Close())
		}
		return nil, fmt.Errorf("opening shard %d of cluster %s: %w", o.Number, o.Cluster, err)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.candidacy, s.resign = context.WithCancel(s.ctx)
	s.wg.Go(s.watch)
	s.wg.Go(s.run)
	s.wg.Go(s.upkeep)
	s.wg.Go(s.verifyLoop)
	s.wg.Go(s.compareLoop)
	return s, nil
}

// openCopy opens the store if this member should have a copy. A damaged one stays closed; run replaces it.
func (s *Shard) openCopy(ctx context.Context) error {
	if err := s.initHolders(ctx); err != nil {
		return err
	}
	if held, _ := s.holds(); !held {
		return nil
	}
	s.storeMu.Lock()
	err := s.openLocked()
	s.storeMu.Unlock()
	if err == nil || s.noticeDamage(err) {
		return nil
	}
	return err
}

// Engine returns the engine while this member is the owner, else ErrNotOwner or
// ErrNoOwner. Only the shard closes it.
func (s *Shard) Engine() (engine.Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.engine != nil:
		return s.engine, nil
	case s.view.serving().Member == "" || s.view.serving().Member == s.o.Member:
		return nil, engine.ErrNoOwner
	}
	return nil, engine.ErrNotOwner
}

// Owner returns the owner that serves the shard.
func (s *Shard) Owner() engine.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.serving()
}

// changeLocked wakes the goroutines that wait for a change.
func (s *Shard) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// setRole sets the role, and the error that keeps the store from following the log.
func (s *Shard) setRole(role Role, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.role, s.err = role, err
	s.changeLocked()
}

// Status returns the state of the shard.
func (s *Shard) Status() Status {
	live := s.o.Members.Live()
	s.refreshApplied()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{
		Role: s.role, Owner: s.view.serving(), Err: s.err,
		Applied: s.applied.Load(), End: max(s.end.Load(), s.applied.Load()),
	}
	if s.writer != nil {
		out.Full, _ = s.writer.Full()
	}
	copies := s.view.holderCopies()
	for _, c := range copies {
		out.End = max(out.End, c.Applied) // a member without a copy does not read the log
	}
	least := out.Applied
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		c := copies[name]
		if name == s.o.Member {
			c.Applied, c.Flushed = out.Applied, max(c.Flushed, s.flushed)
		}
		if c.Flushed < least && name != s.o.Member {
			least, out.SlowestMember = c.Flushed, name
		}
		out.Copies = append(out.Copies, Copy{
			Member: name, Live: slices.Contains(live, name), Applied: c.Applied, Flushed: c.Flushed,
			Lag: out.End - min(out.End, c.Applied), Lost: c.LogLost, Problem: c.Problem,
		})
	}
	return out
}

// refreshApplied reads the applied position from the store while an engine writes to it.
func (s *Shard) refreshApplied() {
	s.mu.Lock()
	owner := s.engine != nil
	s.mu.Unlock()
	if !owner {
		return
	}
	if m, err := s.storePosition(); err == nil {
		s.applied.Store(max(s.applied.Load(), m.seq))
	}
}

// storePosition reads the store's position in the log.
func (s *Shard) storePosition() (logPosition, error) {
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	if s.store == nil {
		return logPosition{}, engine.ErrClosed
	}
	stored, err := s.store.LogPosition()
	if err != nil {
		return logPosition{}, err
	}
	return decodeLogPosition(stored)
}

// HandOver gives up the ownership and does not campaign again. It is for the shutdown of the
// process. It returns when running calls have ended and another member may take over.
func (s *Shard) HandOver(ctx context.Context) error {
	s.mu.Lock()
	s.resigning = true
	s.changeLocked()
	s.mu.Unlock()
	s.resign()
	s.requestHandOver()
	for {
		s.mu.Lock()
		mine, changed := s.role == Leading || s.view.owner.Instance == s.instance, s.changed
		s.mu.Unlock()
		if !mine {
			return nil
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Shard) requestHandOver() {
	select {
	case s.handOverRequests <- struct{}{}:
	default:
	}
}

// catchUpTimeout is how long CatchUp waits for a copy to reach the end of the log.
const catchUpTimeout = 30 * time.Second

// CatchUp returns when this member's copy has everything that was in the log before the
// call. It waits up to catchUpTimeout for a copy that does not follow the log yet. It
// returns nil when this member should have no copy.
func (s *Shard) CatchUp(ctx context.Context) error {
	if held, _ := s.holds(); !held {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	end, known := uint64(0), false
	for {
		s.mu.Lock()
		st := s.stream
		s.mu.Unlock()
		err := errNotFollowing
		if st != nil && !known {
			var state jetstream.StreamState
			if state, err = st.state(ctx); err == nil {
				end, known = state.LastSeq, true
			}
		}
		if st != nil && known {
			s.refreshApplied()
			at := s.applied.Load()
			if at >= end {
				return nil
			}
			err = fmt.Errorf("copy of this member has the log up to message %d of %d", at, end)
		}
		s.await(ctx, nil, campaignStagger/10)
		if ctx.Err() != nil {
			return fmt.Errorf("shard %d of cluster %s: %w; try again, or on another member", s.o.Number,
				s.o.Cluster, err)
		}
	}
}

// Checkpoint writes a copy of the store to a directory that does not exist yet. A member
// without a copy fetches one from another member that has everything that was in the log
// before the call.
func (s *Shard) Checkpoint(ctx context.Context, dir string) error {
	if held, _ := s.holds(); !held {
		_, err := s.fetchAny(ctx, dir, true)
		return err
	}
	return s.checkpoint(ctx, dir)
}

func (s *Shard) checkpoint(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.storeMu.RLock()
	defer s.storeMu.RUnlock()
	if s.store == nil {
		return engine.ErrClosed
	}
	return s.store.Checkpoint(dir)
}

// Close closes the copy. An owner gives up the ownership first.
func (s *Shard) Close() error {
	s.cancel()
	s.wg.Wait()
	if err := s.checkpoints.sweep(s.disk, 0); err != nil {
		s.log.Warn("removing checkpoints for other members failed; the next start removes them", slog.Any("error", err))
	}
	if err := s.mark.close(); err != nil {
		s.log.Warn("power cut would lose the last acknowledged positions of this member", slog.Any("error", err))
	}
	s.storeMu.Lock()
	defer s.storeMu.Unlock()
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}

// Destroy removes the log and the keys of a shard that no member has open.
func Destroy(ctx context.Context, o Options) error {
	if err := removeStreams(ctx, &o, ""); err != nil {
		return fmt.Errorf("removing the log of shard %d of cluster %s: %w", o.Number, o.Cluster, err)
	}
	if _, err := o.Etcd.Delete(ctx, o.keys().base, clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("removing the keys of shard %d of cluster %s: %w", o.Number, o.Cluster, err)
	}
	return nil
}
