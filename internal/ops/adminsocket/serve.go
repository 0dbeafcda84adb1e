package adminsocket

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
)

const (
	maxCallers     = 8
	requestTimeout = 10 * time.Second
	acceptBackoff  = time.Second
)

// Handler handles a request. Its context ends when the caller disconnects. Serve sends the error to
// the caller.
type Handler func(ctx context.Context, caller *Conn) error

// Serve serves callers, at most maxCallers at a time, until the listener is closed, and returns when
// they are served. handlers has a handler for each command. When the context ends, calls are
// aborted.
func Serve(ctx context.Context, listener *Listener, handlers map[string]Handler, log *slog.Logger) {
	var running sync.WaitGroup
	defer running.Wait()
	room := make(chan struct{}, maxCallers)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Warn("admin socket failed; retrying", slog.Any("error", err))
			if retry.Sleep(ctx, acceptBackoff) != nil {
				return
			}
			continue
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
			serve(ctx, NewConn(conn), handlers)
		})
	}
}

func serve(ctx context.Context, caller *Conn, handlers map[string]Handler) {
	if err := caller.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
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
	defer context.AfterFunc(ctx, func() { _ = caller.Close() })() // so that WaitClosed returns
	go func() {
		caller.WaitClosed()
		cancel()
	}()
	if handle, ok := handlers[request.Command]; ok {
		err = handle(ctx, caller)
	} else {
		err = errs.Newf(errs.Invalid, "request %q is unknown to the server; use the program of the server's version",
			request.Command)
	}
	if err != nil {
		// fails only if the caller disconnected
		_ = caller.Respond(Response{Error: err.Error(), Kind: errs.KindOf(err)})
	}
}
