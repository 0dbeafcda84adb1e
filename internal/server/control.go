package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ops/adminsocket"
)

const (
	controlCallers = 8
	controlTimeout = 10 * time.Second
)

// openControl opens the admin socket for commands on this machine, and starts scheduled
// backups. If the file system does not support sockets, the server runs without the commands.
func (s *server) openControl(ctx context.Context) error {
	if err := s.stager.Clean(); err != nil {
		s.log.Warn("staged copy of an earlier backup cannot be removed", slog.Any("error", err))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	if s.ensemble == nil {
		running.Go(func() { s.backups.Run(ctx) }) // in an ensemble the elected member takes them
	}
	listener, err := adminsocket.Listen(s.cfg.DataDir)
	if err != nil {
		s.log.Warn("admin socket cannot be opened; freshet backup and freshet admin link do not work",
			slog.Any("error", err))
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

// acceptControl serves callers until the listener is closed, at most controlCallers at a
// time.
func (s *server) acceptControl(ctx context.Context, listener *adminsocket.Listener, running *sync.WaitGroup) {
	room := make(chan struct{}, controlCallers)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("admin socket failed; retrying", slog.Any("error", err))
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
			_ = conn.Close() // the server is stopping
			return
		}
		running.Go(func() {
			defer func() { <-room }()
			defer func() { _ = conn.Close() }() // an error does not matter after the reply
			s.serveControl(ctx, adminsocket.NewConn(conn))
		})
	}
}

func (s *server) serveControl(ctx context.Context, caller *adminsocket.Conn) {
	if err := caller.SetReadDeadline(time.Now().Add(controlTimeout)); err != nil {
		return
	}
	request, err := caller.Request()
	if err != nil {
		return // not a valid request
	}
	if err := caller.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = caller.Close() })() // so that HungUp returns
	go func() {
		caller.WaitClosed()
		cancel()
	}()
	switch request.Command {
	case adminsocket.CommandBackup:
		err = s.serveBackup(ctx, caller)
	case adminsocket.CommandLink:
		err = s.serveLink(ctx, caller)
	default:
		err = errs.Newf(errs.Invalid, "request %q is unknown to the server; use the program of the server's version",
			request.Command)
	}
	if err != nil {
		// fails only if the caller disconnected
		_ = caller.Respond(adminsocket.Response{Error: err.Error(), Kind: errs.KindOf(err)})
	}
}

// serveBackup stages a copy, and removes it when the caller disconnects.
func (s *server) serveBackup(ctx context.Context, caller *adminsocket.Conn) error {
	dir, remove, err := s.stager.Stage(ctx, func(what string) {
		_ = caller.Respond(adminsocket.Response{Progress: what}) // a caller that disconnects cancels ctx
	})
	if err != nil {
		return err
	}
	name, err := filepath.Rel(s.cfg.DataDir, dir)
	if err == nil {
		err = caller.Respond(adminsocket.Response{Staged: name})
	}
	if err == nil {
		<-ctx.Done()
	}
	if err := remove(); err != nil {
		s.log.Warn("staged copy of a backup cannot be removed", slog.Any("error", err))
	}
	return err
}
