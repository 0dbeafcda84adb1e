package replicated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

const (
	// lostPatience is how long a log that seems to have lost messages is queried again,
	// because its leader may have just started.
	lostPatience = 10 * time.Second
	// retirePatience is how long an owner that hands over waits for its last appends.
	retirePatience = 2 * time.Second
	retryPause     = 200 * time.Millisecond
	lostPause      = 5 * time.Second
)

// run follows the log, and owns the shard when it is elected, until the shard is closed.
func (s *Shard) run() {
	for s.ctx.Err() == nil {
		if held, _ := s.holds(); !held {
			s.stayOut()
			continue
		}
		ctx, cancel := s.whileHeld()
		err := s.enter()
		if err == nil {
			err = s.term(ctx)
		}
		left := ctx.Err() != nil
		cancel()
		if s.ctx.Err() != nil {
			break
		}
		if left {
			continue
		}
		s.note(Starting, err)
		s.tell(err)
		s.misfits = errors.Is(err, engine.ErrLogLost)
		if errors.Is(err, engine.ErrFailed) {
			return // a failed store cannot be used again
		}
		if errors.Is(err, errPacking) {
			s.complain(slog.LevelError,
				"copy of the shard cannot follow its log until this member is upgraded; no data is lost", err)
			s.await(s.ctx, nil, lostPause)
			continue
		}
		if !errors.Is(err, engine.ErrLogLost) {
			s.complain(slog.LevelWarn, "copy of the shard does not follow its log; retrying", err)
			s.sleep(s.ctx)
			continue
		}
		s.complain(slog.LevelError, "copy of the shard does not match its log; restore a backup, or see what would "+
			"be lost with: freshet ensemble accept-loss", err)
		if !s.acceptLoss() {
			s.awaitAccepted(lostPause)
		}
	}
	s.note(Starting, engine.ErrClosed)
}

// complain logs why the copy does not follow the log: once, and at debug while the error
// stays the same.
func (s *Shard) complain(level slog.Level, what string, err error) {
	if s.complained == err.Error() {
		level = slog.LevelDebug
	}
	s.complained = err.Error()
	s.log.LogAttrs(s.ctx, level, what, slog.Any("error", err))
}

// acceptLoss carries out what an operator has accepted. It reports whether it did anything.
func (s *Shard) acceptLoss() bool {
	done, err := s.accept(s.ctx)
	if err != nil && s.ctx.Err() == nil {
		s.log.Warn("carrying out an accepted loss failed; retrying", slog.Any("error", err))
	}
	return done && err == nil
}

// awaitAccepted waits for d, or until an operator has accepted a loss.
func (s *Shard) awaitAccepted(d time.Duration) {
	s.mu.Lock()
	before := s.view.accepted
	s.mu.Unlock()
	for until := time.Now().Add(d); s.ctx.Err() == nil; {
		s.mu.Lock()
		now, changed := s.view.accepted, s.changed
		s.mu.Unlock()
		left := time.Until(until)
		if now != before || left <= 0 {
			return
		}
		s.await(s.ctx, changed, left)
	}
}

// tell publishes a problem that does not resolve automatically, for the other members.
func (s *Shard) tell(err error) {
	s.mu.Lock()
	said := s.said
	s.mu.Unlock()
	is := said
	is.Follows = false
	if is.Lost, is.Problem = problemOf(err); is.Problem == "" || is == said {
		return
	}
	if err := s.report(s.ctx, is); err != nil && s.ctx.Err() == nil {
		s.log.Warn("publishing that this copy is unusable failed; other members do not know", slog.Any("error", err))
	}
}

// problemOf describes an error of a copy that does not resolve automatically, "" for other
// errors. lost reports whether the copy and the log do not match.
func problemOf(err error) (lost bool, problem string) {
	switch {
	case errors.Is(err, engine.ErrLogLost):
		return true, strings.TrimPrefix(err.Error(), engine.ErrLogLost.Error()+": ")
	case errors.Is(err, errPacking):
		return false, err.Error()
	case errors.Is(err, engine.ErrFailed):
		return false, "store has failed; see the log of the member"
	}
	return false, ""
}

// stayOut removes the copy and waits while this member should have none.
func (s *Shard) stayOut() {
	err := s.leave(s.ctx)
	if s.ctx.Err() != nil {
		return
	}
	s.note(Elsewhere, nil)
	again := time.Hour
	if err != nil {
		s.log.Warn("removing the copy of the shard, which other members have now, failed; retrying",
			slog.Any("error", err))
		again = lostPause
	}
	for begin := time.Now(); s.ctx.Err() == nil && time.Since(begin) < again; {
		held, changed := s.holds()
		if held {
			return
		}
		s.await(s.ctx, changed, again)
	}
}

// term follows the log, and owns the shard when elected, until an error occurs.
func (s *Shard) term(ctx context.Context) error {
	st, err := s.openLog(ctx)
	if err != nil {
		return err
	}
	f := &follower{st: st, store: s.store, end: &s.end, applied: &s.applied, bytes: &s.bytes}
	if err := f.resume(); err != nil {
		return err
	}
	s.mu.Lock()
	flushed := s.flushed
	s.mu.Unlock()
	if err := s.report(ctx, copyValue{Applied: f.at.position, Flushed: flushed}); err != nil {
		return err
	}
	if err := s.fit(ctx, f); err != nil {
		return err
	}
	s.mu.Lock()
	s.stream = st
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.stream = nil
		s.mu.Unlock()
	}()
	s.complained = ""
	for {
		s.note(Standby, nil)
		c, err := s.follow(ctx, f)
		if err != nil {
			return err
		}
		err = s.own(ctx, f, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := f.resume(); err != nil {
			return err
		}
	}
}

// openLog opens the shard's log. When the log seems to be missing, openLog retries for
// lostPatience, unless it did so before: servers that have just started, or elect a leader,
// may not know the stream yet.
func (s *Shard) openLog(ctx context.Context) (*stream, error) {
	deadline := time.Now().Add(lostPatience)
	for {
		st, err := openStream(ctx, &s.o, s.keys.log)
		if !errors.Is(err, engine.ErrLogLost) || s.misfits || time.Now().After(deadline) || ctx.Err() != nil {
			return st, err
		}
		s.sleep(ctx)
	}
}

// fit makes sure that the store matches the log, fetching a checkpoint if the log begins
// too late.
func (s *Shard) fit(ctx context.Context, f *follower) error {
	deadline, fetched := time.Now().Add(lostPatience), 0
	for {
		err := f.st.fits(ctx, f.at)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, errBehind) && fetched == fetchTries:
			return err
		case errors.Is(err, errBehind):
			fetched++
			if err := s.bootstrap(ctx, f); err != nil {
				return err
			}
			continue
		case errors.Is(err, engine.ErrLogLost) && time.Now().After(deadline):
			return err
		case !errors.Is(err, engine.ErrLogLost):
			return err
		}
		s.sleep(ctx)
	}
}

// follow applies the log until this member has acquired the owner key.
func (s *Shard) follow(ctx context.Context, f *follower) (*claim, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	won := make(chan *claim, 1)
	go func() {
		c, err := s.campaign(ctx)
		if err != nil && c != nil { // acquired after the context had ended
			s.release(c)
			c = nil
		}
		won <- c
		cancel()
	}()
	var err error
	var deaf grumble
	for ctx.Err() == nil {
		err = f.tail(ctx, 0)
		if ctx.Err() != nil {
			err = nil
			break
		}
		if errors.Is(err, engine.ErrLogLost) || errors.Is(err, errBehind) || errors.Is(err, errPacking) ||
			errors.Is(err, engine.ErrFailed) || errors.Is(err, engine.ErrCorrupt) {
			break
		}
		s.log.LogAttrs(ctx, deaf.level(), "following the log of the shard failed; retrying",
			slog.Any("error", err))
		err = nil
		if again := f.resume(); again != nil {
			err = again
			break
		}
		s.sleep(ctx)
	}
	cancel()
	c := <-won
	if c == nil && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil && c != nil {
		s.release(c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// own serves the shard until the ownership is lost or handed over.
func (s *Shard) own(ctx context.Context, f *follower, c *claim) error {
	defer s.release(c)
	w, err := s.begin(ctx, f)
	if err != nil {
		s.yield(turn)
		return fmt.Errorf("taking over the shard: %w", err)
	}
	e, err := f.store.Open(w)
	if err != nil {
		s.yield(lostPause) // another member may succeed
		w.close(err)
		return fmt.Errorf("opening the engine of the shard: %w", err)
	}
	if err := s.announce(ctx, c, w.epoch); err != nil {
		return errors.Join(err, s.retire(e, w, true))
	}
	select {
	case <-s.giveUp: // a request to an earlier ownership; a member that shuts down has set resigning
	default:
	}
	s.mu.Lock()
	s.engine, s.writer, s.role = e, w, Leading
	s.changeLocked()
	s.mu.Unlock()
	s.log.Info("this member owns the shard", slog.Uint64("epoch", w.epoch), slog.Uint64("message", f.at.position))
	if s.o.OnOwner != nil {
		s.o.OnOwner(e)
	}
	graceful, why := s.serve(ctx, f.store, c, w)
	s.log.Info("this member gives up the shard", slog.Uint64("epoch", w.epoch), slog.String("reason", why))
	s.mu.Lock()
	s.engine, s.writer, s.role = nil, nil, Standby
	s.changeLocked()
	s.mu.Unlock()
	if s.o.OnLost != nil {
		s.o.OnLost()
	}
	return s.retire(e, w, graceful)
}

// yield keeps this member from campaigning for d.
func (s *Shard) yield(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.yields = time.Now().Add(d)
}

// begin reads the log to its end and appends the epoch record of this ownership.
func (s *Shard) begin(ctx context.Context, f *follower) (*writer, error) {
	for {
		if err := f.catchUp(ctx); err != nil {
			return nil, err
		}
		// The rest of an incomplete batch will never arrive.
		at := f.last
		at.position = f.seq
		w, err := newWriter(f.st, at, s.instance, s.o.Live, s.o.LogBytes)
		if err != nil {
			return nil, err
		}
		after, err := w.begin()
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
		rev, changed, resigns := s.view.rev, s.changed, s.resigns
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
		case <-s.giveUp:
			return true, "ownership is handed over"
		case <-ctx.Done():
			return true, "shard is closed"
		case <-changed:
		}
	}
}

// retire closes the engine of a former owner. A graceful retirement waits for appends in
// flight, up to retirePatience.
func (s *Shard) retire(e *pebble.Engine, w *writer, graceful bool) error {
	e.Resign()
	ended := errors.New("this member has given up the shard")
	if graceful {
		timer := time.AfterFunc(retirePatience, func() { w.lose(ended) })
		defer timer.Stop()
	} else {
		w.lose(ended)
	}
	err := e.Close()
	w.close(ended)
	return err
}
