package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ops/adminsocket"
)

const (
	controlCallers  = 8
	controlPatience = 10 * time.Second
)

// openControl opens the socket that commands on this machine use, and begins to
// take backups on schedule. A file system without sockets costs the commands, not
// the server.
func (s *server) openControl(ctx context.Context) error {
	if err := os.RemoveAll(s.cfg.Path(stagingDir)); err != nil {
		s.log.Warn("what a backup left behind cannot be removed", slog.String("error", err.Error()))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	if s.group == nil {
		running.Go(func() { s.backups.run(ctx) }) // in a group its elected member takes them
	}
	listener, err := adminsocket.Listen(s.cfg.DataDir)
	if err != nil {
		s.log.Warn("the control socket cannot be opened, so freshet backup and freshet admin link do not work",
			slog.String("error", err.Error()))
	} else {
		running.Go(func() { s.acceptControl(ctx, listener, &running) })
	}
	s.closers = append(s.closers, func() error {
		cancel()
		if listener != nil {
			err = listener.Close()
		}
		running.Wait()
		return err
	})
	return nil
}

// acceptControl serves callers until the listener is closed, a few at a time.
func (s *server) acceptControl(ctx context.Context, listener *adminsocket.Listener, running *sync.WaitGroup) {
	room := make(chan struct{}, controlCallers)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("the control socket does not work for now", slog.String("error", err.Error()))
			select {
			case <-time.After(time.Second):
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			_ = conn.Close() // nobody serves it any more
			return
		}
		running.Go(func() {
			defer func() { <-room }()
			defer func() { _ = conn.Close() }() // all is said
			s.serveControl(ctx, adminsocket.NewConn(conn))
		})
	}
}

func (s *server) serveControl(ctx context.Context, caller *adminsocket.Conn) {
	if err := caller.SetReadDeadline(time.Now().Add(controlPatience)); err != nil {
		return
	}
	request, err := caller.Request()
	if err != nil {
		return // nobody we know
	}
	if err := caller.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = caller.Close() })() // so that HungUp returns
	go func() {
		caller.HungUp()
		cancel()
	}()
	switch request.Do {
	case adminsocket.DoBackup:
		err = s.serveBackup(ctx, caller)
	case adminsocket.DoLink:
		err = s.serveLink(ctx, caller)
	default:
		err = errs.Newf(errs.Invalid, "the server does not know %q; use the program of the server's version",
			request.Do)
	}
	if err != nil {
		_ = caller.Reply(adminsocket.Reply{Error: err.Error(), Kind: errs.KindOf(err)}) // it may be gone
	}
}

// serveBackup makes a copy, and removes it when the caller is done with it.
func (s *server) serveBackup(ctx context.Context, caller *adminsocket.Conn) error {
	dir, remove, err := s.stage(ctx, func(what string) {
		_ = caller.Reply(adminsocket.Reply{Progress: what}) // one that is gone ends ctx
	})
	if err != nil {
		return err
	}
	name, err := filepath.Rel(s.cfg.DataDir, dir)
	if err == nil {
		err = caller.Reply(adminsocket.Reply{Staged: name})
	}
	if err == nil {
		<-ctx.Done()
	}
	if err := remove(); err != nil {
		s.log.Warn("the copy that a backup was written from cannot be removed", slog.String("error", err.Error()))
	}
	return err
}
