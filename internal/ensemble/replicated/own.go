package replicated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// retireTimeout is how long an owner that hands over waits for its last appends.
const retireTimeout = 2 * time.Second

// own serves the shard until the ownership is lost or handed over.
func (s *Shard) own(ctx context.Context, f *follower, c *claim) error {
	defer s.release(c)
	w, err := s.begin(ctx, f)
	if err != nil && s.candidacy.Err() != nil {
		return nil // the member shuts down
	}
	if err != nil {
		s.postponeCampaign(campaignStagger)
		if errors.Is(err, engine.ErrLogLost) {
			return err // published as it is
		}
		return fmt.Errorf("taking over the shard: %w", err)
	}
	e, err := f.store.Open(w)
	if err != nil {
		s.postponeCampaign(logLostInterval) // another member may succeed
		w.close(err)
		return fmt.Errorf("opening the engine of the shard: %w", err)
	}
	if err := s.announce(ctx, c, w.epoch); err != nil {
		return errors.Join(err, s.retire(e, w, true))
	}
	select {
	case <-s.handOverRequests: // a request to an earlier ownership; a member that shuts down has set resigning
	default:
	}
	s.mu.Lock()
	s.engine, s.writer, s.role = e, w, Leading
	s.changeLocked()
	s.mu.Unlock()
	s.log.Info("this member owns the shard", slog.Uint64("epoch", w.epoch), slog.Uint64("message", f.at.seq))
	if s.o.Ownership != nil {
		s.o.Ownership.Acquired(e)
	}
	graceful, why := s.serve(ctx, f.store, c, w)
	s.log.Info("this member gives up the shard", slog.Uint64("epoch", w.epoch), slog.String("reason", why))
	s.mu.Lock()
	s.engine, s.writer, s.role = nil, nil, Standby
	s.changeLocked()
	s.mu.Unlock()
	if s.o.Ownership != nil {
		s.o.Ownership.Lost()
	}
	return s.retire(e, w, graceful)
}

// postponeCampaign keeps this member from campaigning for d.
func (s *Shard) postponeCampaign(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.campaignAfter = time.Now().Add(d)
}

// begin reads the log to its end, checks that it has everything that members have acknowledged,
// and appends the epoch record of this ownership. It stops when the member shuts down: a log without
// a majority may leave the record without an outcome for a minute.
func (s *Shard) begin(ctx context.Context, f *follower) (*writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.candidacy, cancel)()
	for {
		if err := f.catchUp(ctx); err != nil {
			return nil, err
		}
		epoch, err := s.checkEnd(ctx, f)
		if err != nil {
			return nil, err
		}
		// The rest of an incomplete batch will never arrive.
		at := f.last
		at.seq, at.epoch = f.seq, max(at.epoch, epoch)
		w, err := newWriter(f.st, at, s.instance, s.o.Lease.Alive, s.o.LogBytes, s.o.Metrics, s.o.Unacknowledged)
		if err != nil {
			return nil, err
		}
		w.mark = s.mark
		ends := context.AfterFunc(ctx, func() { w.lose(context.Cause(ctx)) })
		after, err := w.begin()
		if !ends() && err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = f.apply(nil, after)
		}
		if err == nil {
			return w, nil
		}
		w.close(err)
		if !errors.Is(err, errRival) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// serve waits until the ownership is lost or handed over. It reports whether appends in
// flight may be completed.
func (s *Shard) serve(ctx context.Context, store *pebble.Store, c *claim, w *writer) (graceful bool, why string) {
	seen := false // whether the watch has delivered this member's key
	for {
		s.mu.Lock()
		rev, changed, resigns := s.view.ownerRev, s.changed, s.resigning
		s.mu.Unlock()
		seen = seen || rev == c.rev
		if rev > c.rev || seen && rev != c.rev {
			return false, "owner key is gone"
		}
		if resigns {
			return true, "member shuts down"
		}
		select {
		case <-w.lost:
			return false, "log has refused an append"
		case <-c.session.Done():
			return false, "lease of the member has ended"
		case <-store.Failed():
			return false, "store has failed"
		case <-s.handOverRequests:
			return true, "ownership is handed over"
		case <-store.Damaged():
			return false, "files of the copy are damaged"
		case <-ctx.Done():
			return true, "shard is closed"
		case <-changed:
		}
	}
}

// retire closes the engine of a former owner. A graceful retirement waits for appends in
// flight, up to retireTimeout.
func (s *Shard) retire(e *pebble.Engine, w *writer, graceful bool) error {
	e.Resign()
	ended := errors.New("this member has given up the shard")
	if graceful {
		timer := time.AfterFunc(retireTimeout, func() { w.lose(ended) })
		defer timer.Stop()
	} else {
		w.lose(ended)
	}
	err := e.Close()
	w.close(ended)
	return err
}
