package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// leading is the part of a member that one of the group has: controllers, garbage
// collection, the first start, and backups on schedule.
type leading struct {
	now     atomic.Bool   // this is the one
	started chan struct{} // closed when this member has made what a first start makes
	cancel  context.CancelFunc
	ended   chan struct{} // closed when it has handed over for good; nil before it began
}

func newLeading() leading { return leading{started: make(chan struct{})} }

// lead stands for election until the background ends or the server stops.
func (s *server) lead(background context.Context) {
	ctx, cancel := context.WithCancel(background)
	l := &s.group.leading
	l.cancel, l.ended = cancel, make(chan struct{})
	go func() {
		defer close(l.ended)
		s.group.members.Lead(ctx, s.runControllers)
	}()
}

// stopLeading hands over to another member; the channel is closed when it is done. It
// is first of all when a server stops, so that nobody waits for the rest.
func (s *server) stopLeading(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if s.group == nil || s.group.leading.ended == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		s.group.leading.cancel()
		select {
		case <-s.group.leading.ended:
		case <-ctx.Done():
		}
		s.tellReady(ctx, false)
	}()
	return done
}

// controllersAgain is how long a member waits that could not do what the elected one
// does.
const controllersAgain = time.Second

// runControllers is what the elected member does until the context ends.
func (s *server) runControllers(ctx context.Context) {
	s.group.leading.now.Store(true)
	defer s.group.leading.now.Store(false)
	err := s.control(ctx)
	if ctx.Err() != nil {
		return
	}
	s.log.Error("this member could not run the controllers of the group; it, or another member, tries again",
		slog.String("error", err.Error()))
	select {
	case <-time.After(controllersAgain):
	case <-ctx.Done():
	}
}

// control runs the controllers, and with them what a first start needs them for.
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
	err = s.lookAfterGroup(ctx)
	if err == nil {
		backups := make(chan struct{})
		go func() { defer close(backups); s.backups.run(ctx) }()
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

// lookAfterGroup makes what a first start makes, once in the life of the group.
func (s *server) lookAfterGroup(ctx context.Context) error {
	if err := s.loops.Publish(ctx); err != nil {
		return err
	}
	first, err := bootstrap(ctx, s.cfg, s.loops.Client(), s.plan, s.identity.issuer)
	if err != nil {
		return err
	}
	if _, err := s.etcd.Put(ctx, s.startedKey(), s.cfg.Members.Self); err != nil {
		return err
	}
	select {
	case <-s.group.leading.started:
		return nil // this member has led before
	default:
	}
	if first {
		if s.link, _, err = s.adminLink(ctx, firstLinkLifetime); err != nil {
			return err
		}
	}
	close(s.group.leading.started)
	return nil
}

// awaitFirstStart waits until the group has had its first start, and writes the
// administrator's files of this member. The link to sign in with is shown by the
// member that made it.
func (s *server) awaitFirstStart(ctx context.Context) error {
	text := "the first start of the group, which its elected member makes"
	s.waits.Store(&text)
	for {
		try, cancel := context.WithTimeout(ctx, bootstrapTimeout)
		err := writeAdminFiles(try, s.cfg, s.loops.Client(), s.identity.issuer)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Warn("waiting for the first start of the group", slog.String("error", err.Error()))
	}
	if err := s.awaitStarted(ctx); err != nil {
		return err
	}
	return s.awaitOpened(ctx)
}
