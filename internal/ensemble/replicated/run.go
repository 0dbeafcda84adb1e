package replicated

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/lograte"
	"freshet/internal/storage/engine"
)

const (
	// logLostTimeout is how long a log that seems to have lost messages is queried again,
	// because its leader may have just started.
	logLostTimeout  = 10 * time.Second
	retryInterval   = 200 * time.Millisecond
	logLostInterval = 5 * time.Second
)

// run follows the log, and owns the shard when it is elected, until the shard is closed.
func (s *Shard) run() {
	for s.ctx.Err() == nil {
		if held, _ := s.holds(); !held {
			s.waitWithoutCopy()
			continue
		}
		ctx, cancel := s.whileHeld()
		err := s.heal(ctx)
		if err == nil {
			err = s.openStore()
		}
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
		if s.noticeDamage(err) {
			err = s.damageError(err)
			s.setRole(Starting, err)
			s.publishProblem(err)
			s.awaitHeal(err)
			continue
		}
		s.setRole(Starting, err)
		s.publishProblem(err)
		s.mismatched, s.endLost = errors.Is(err, engine.ErrLogLost), errors.Is(err, errEndLost)
		if errors.Is(err, engine.ErrFailed) {
			return // a failed store cannot be used again
		}
		if errors.Is(err, errUnknownPacking) {
			s.logProblem(slog.LevelError,
				"copy of the shard cannot follow its log until this member is upgraded; no data is lost", err)
			s.await(s.ctx, nil, logLostInterval)
			continue
		}
		if !errors.Is(err, engine.ErrLogLost) {
			s.logProblem(slog.LevelWarn, "copy of the shard does not follow its log; retrying", err)
			if !s.tryBeginAccepted() {
				s.sleep(s.ctx)
			}
			continue
		}
		s.logProblem(slog.LevelError, "copy of the shard does not match its log; start the members that are "+
			"stopped, or see what would be lost with: freshet ensemble accept-loss", err)
		if !s.tryApplyAccepted() && !s.tryRebuild() {
			s.awaitAccepted(logLostInterval)
		}
	}
	s.setRole(Starting, engine.ErrClosed)
}

// retryWarnings limits the warnings about a failure that is retried. A failure that resolves
// automatically within seconds, such as an election in etcd, needs no action of the operator, and
// repeated by every shard it would hide those that do.
var retryWarnings = lograte.Policy{After: 10 * time.Second, Forget: 5 * time.Second, Interval: 10 * time.Minute}

// logProblem logs why the copy does not follow the log: once, and at debug while the error
// stays the same.
func (s *Shard) logProblem(level slog.Level, what string, err error) {
	if !s.problems.Changed("follow", err.Error()) {
		level = slog.LevelDebug
	}
	s.log.LogAttrs(s.ctx, level, what, slog.Any("error", err))
}

// tryApplyAccepted carries out what an operator has accepted. It reports whether it did anything.
func (s *Shard) tryApplyAccepted() bool {
	done, err := s.applyAccepted(s.ctx)
	if err != nil && s.ctx.Err() == nil {
		s.log.Warn("carrying out an accepted loss failed; retrying", slog.Any("error", err))
	}
	return done && err == nil
}

// tryBeginAccepted begins the log that an operator has decided on, although the copy and the old
// log match: the servers of the old log may not even be able to read it. It does so once for each
// decision, and reports whether it did anything.
func (s *Shard) tryBeginAccepted() bool {
	s.mu.Lock()
	decided := s.view.accepted
	s.mu.Unlock()
	if decided == s.acceptedTried {
		return false
	}
	done, err := s.beginAccepted(s.ctx)
	if err != nil {
		if s.ctx.Err() == nil {
			s.log.Warn("carrying out an accepted loss failed; retrying", slog.Any("error", err))
		}
		return false
	}
	s.acceptedTried = decided
	return done
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

// publishProblem publishes a problem that does not resolve automatically, for the other members.
func (s *Shard) publishProblem(err error) {
	s.mu.Lock()
	published := s.published
	s.mu.Unlock()
	is := published
	is.InSync = false
	if is.LogLost, is.Problem = problemOf(err); is.Problem == "" || is == published {
		return
	}
	if err := s.publishStatus(s.ctx, is); err != nil && s.ctx.Err() == nil {
		s.log.Warn("publishing that this copy is unusable failed; other members do not know", slog.Any("error", err))
	}
}

// problemOf describes an error of a copy that does not resolve automatically, "" for other
// errors. lost reports whether the copy and the log do not match.
func problemOf(err error) (lost bool, problem string) {
	switch {
	case errors.Is(err, engine.ErrLogLost):
		return true, strings.TrimPrefix(err.Error(), engine.ErrLogLost.Error()+": ")
	case errors.Is(err, errUnknownPacking):
		return false, err.Error()
	case errors.Is(err, errHealing), errors.Is(err, engine.ErrCorrupt):
		return false, err.Error()
	case errors.Is(err, engine.ErrFailed):
		return false, "store has failed; see the log of the member"
	}
	return false, ""
}

// waitWithoutCopy removes the copy and waits while this member should have none.
func (s *Shard) waitWithoutCopy() {
	err := s.dropCopy(s.ctx)
	if s.ctx.Err() != nil {
		return
	}
	s.setRole(Elsewhere, nil)
	again := time.Hour
	if err != nil {
		s.log.Warn("removing the copy of the shard, which other members have now, failed; retrying",
			slog.Any("error", err))
		again = logLostInterval
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
	f := &follower{st: st, store: s.store, end: &s.end, applied: &s.applied, bytes: &s.bytes, mark: s.mark}
	if err := f.resume(); err != nil {
		return err
	}
	if err := s.publishBegin(ctx, f.at); err != nil {
		return err
	}
	if err := s.ensureMatch(ctx, f); err != nil {
		return err
	}
	s.noteStore(f.at)
	if s.mismatched {
		// The log may still be without its end: the copy does not become a standby before it is not,
		// so that its state does not change back and forth.
		if err := s.checkStandby(ctx, f); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.stream = st
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.stream = nil
		s.mu.Unlock()
	}()
	s.problems.Forget("follow")
	ctx, cancel := s.whileIntact(ctx)
	defer cancel()
	for {
		s.setRole(Standby, nil)
		c, err := s.follow(ctx, f)
		if err != nil {
			return err
		}
		err = s.own(ctx, f, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := f.resume(); err != nil {
			return err
		}
	}
}

// publishBegin publishes the position of a copy that begins to follow the log. A copy whose log
// was lost at the last attempt keeps that state until the log has everything.
func (s *Shard) publishBegin(ctx context.Context, at logPosition) error {
	s.mu.Lock()
	is := s.countedLocked(replicaStatus{Applied: at.seq, Flushed: s.flushed})
	published := s.published
	s.mu.Unlock()
	if s.mismatched {
		is.LogLost, is.Problem = published.LogLost, published.Problem
		if is == published {
			return nil
		}
	}
	return s.publishStatus(ctx, is)
}

// openLog opens the shard's log. When the log seems to be missing, openLog retries for
// logLostTimeout, unless it did so before: servers that have just started, or elect a leader,
// may not know the stream yet.
func (s *Shard) openLog(ctx context.Context) (*stream, error) {
	deadline := time.Now().Add(logLostTimeout)
	for {
		st, err := openStream(ctx, &s.o, s.keys.log)
		if !errors.Is(err, engine.ErrLogLost) || s.mismatched || time.Now().After(deadline) || ctx.Err() != nil {
			return st, err
		}
		s.sleep(ctx)
	}
}

// ensureMatch makes sure that the store matches the log, fetching a checkpoint if the log begins
// too late.
func (s *Shard) ensureMatch(ctx context.Context, f *follower) error {
	deadline, fetched := time.Now().Add(logLostTimeout), 0
	for {
		err := f.st.matches(ctx, f.at)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, errBehind) && fetched == maxFetchAttempts:
			return err
		case errors.Is(err, errBehind):
			fetched++
			if err := s.bootstrap(ctx, f, fetched > 1); err != nil {
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
	warnings := lograte.New(retryWarnings)
	for ctx.Err() == nil {
		err = f.follow(ctx, 0)
		if ctx.Err() != nil {
			err = nil
			break
		}
		if errors.Is(err, engine.ErrLogLost) || errors.Is(err, errBehind) || errors.Is(err, errUnknownPacking) ||
			errors.Is(err, engine.ErrFailed) || errors.Is(err, engine.ErrCorrupt) ||
			errors.Is(err, jetstream.ErrStreamNotFound) { // another log may have replaced this one
			break
		}
		s.log.LogAttrs(ctx, warnings.Level("follow"), "following the log of the shard failed; retrying",
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
