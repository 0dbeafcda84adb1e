package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"freshet/internal/controlplane/bootstrap"
)

// leadership is the state of leader election. The elected member runs the controllers, garbage
// collection, the first start, and scheduled backups.
type leadership struct {
	elected atomic.Bool   // this member is elected
	started chan struct{} // closed when this member has done the first start
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the election has stopped; nil before it started
}

func newLeadership() leadership { return leadership{started: make(chan struct{})} }

// lead takes part in the leader election until background is canceled or the server stops.
func (s *server) lead(background context.Context) {
	ctx, cancel := context.WithCancel(background)
	l := &s.ensemble.leadership
	l.cancel, l.ended = cancel, make(chan struct{})
	go func() {
		defer close(l.ended)
		s.ensemble.members.Lead(ctx, s.runControllers)
	}()
}

// stopLeading hands the leadership over to another member. It closes the channel when that is
// done. It is the first step of a shutdown, so that the next leader does not wait for the
// other steps.
func (s *server) stopLeading(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if s.ensemble == nil || s.ensemble.leadership.ended == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		s.ensemble.leadership.cancel()
		select {
		case <-s.ensemble.leadership.ended:
		case <-ctx.Done():
		}
		s.publishReady(ctx, false)
	}()
	return done
}

// controllersBackoff is the backoff of an elected member whose controllers failed.
const controllersBackoff = time.Second

// runControllers runs on the elected member until the context is canceled.
func (s *server) runControllers(ctx context.Context) {
	s.ensemble.leadership.elected.Store(true)
	defer s.ensemble.leadership.elected.Store(false)
	err := s.control(ctx)
	if ctx.Err() != nil {
		return
	}
	s.log.Error("controllers of the ensemble failed on this member; it or another member retries",
		slog.Any("error", err))
	select {
	case <-time.After(controllersBackoff):
	case <-ctx.Done():
	}
}

// control runs the controllers, the first start, which needs them, and scheduled backups.
func (s *server) control(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loops, err := s.kinds.Controllers(s.api.Loopback(), s.api.Recorder())
	if err != nil {
		return err
	}
	if err := loops.Load(ctx); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- loops.Run(ctx) }()
	err = s.bootstrapEnsemble(ctx)
	if err == nil {
		backups := make(chan struct{})
		go func() { defer close(backups); s.backups.Run(ctx) }()
		select {
		case err = <-ended:
			ended <- nil
		case <-ctx.Done():
		}
		cancel()
		<-backups
	}
	cancel()
	return errors.Join(err, <-ended)
}

// bootstrapEnsemble publishes the server-defined objects and does the first start of the
// ensemble if it has not been done.
func (s *server) bootstrapEnsemble(ctx context.Context) error {
	if err := s.loops.Publish(ctx); err != nil {
		return err
	}
	first, err := bootstrap.Run(ctx, s.firstStartOptions())
	if err != nil {
		return err
	}
	if _, err := s.etcd.Put(ctx, s.startedKey(), s.cfg.Members.Self); err != nil {
		return err
	}
	select {
	case <-s.ensemble.leadership.started:
		return nil // this member has led before
	default:
	}
	if first {
		if s.link, _, err = s.adminLink(ctx, firstLinkLifetime); err != nil {
			return err
		}
	}
	close(s.ensemble.leadership.started)
	return nil
}

// awaitFirstStart waits until the first start of the ensemble is done, and writes the
// administrator's files of this member. Only the member that did the first start shows the
// sign-in link.
func (s *server) awaitFirstStart(ctx context.Context) error {
	text := "the first start of the ensemble by its elected member"
	s.waitsFor.Store(&text)
	for {
		try, cancel := context.WithTimeout(ctx, bootstrap.Timeout)
		err := bootstrap.WriteFiles(try, s.firstStartOptions())
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Warn("waiting for the first start of the ensemble", slog.Any("error", err))
	}
	if err := s.awaitStarted(ctx); err != nil {
		return err
	}
	return s.awaitOpened(ctx)
}
