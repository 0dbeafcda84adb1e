package server

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"freshet/internal/ops/adminsocket"
)

// openControl opens the admin socket for commands on this machine, and starts scheduled
// backups. If the file system does not support sockets, the server runs without the commands.
func (s *server) openControl(ctx context.Context) error {
	if err := s.stager.Clean(); err != nil {
		s.log.Warn("staged copy of an earlier backup cannot be removed", slog.Any("error", err))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { s.topology.runBackups(ctx) })
	listener, err := adminsocket.Listen(s.cfg.DataDir)
	if err != nil {
		s.log.Warn("admin socket cannot be opened; freshet backup and freshet admin link do not work",
			slog.Any("error", err))
	} else {
		running.Go(func() {
			adminsocket.Serve(ctx, listener, map[string]adminsocket.Handler{
				adminsocket.CommandBackup: s.serveBackup, adminsocket.CommandLink: s.serveLink,
			}, s.log)
		})
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
