package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/membership"
)

const (
	// internalConnections is far more than the members make: one each, 64 for requests
	// that are sent on, and those that break.
	internalConnections = 1024
	internalHeader      = 10 * time.Second
	internalIdle        = time.Minute // the least; callers close theirs before
)

// internal is the port that members call each other at: mutual TLS, with HTTP/2 or, for
// what is sent on in small, HTTP/1.1. What is mounted there trusts its callers as far as a member can be trusted,
// which is entirely.
type internal struct {
	mux    *http.ServeMux
	server *http.Server
}

// handle mounts something. It is called before the first call can come, or in a phase
// that callers wait for: until then they are answered 404 and try again.
func (i *internal) handle(pattern string, handler http.Handler) { i.mux.Handle(pattern, handler) }

// shutdown ends the port, and lets calls that have begun come to their end.
func (i *internal) shutdown(ctx context.Context) error {
	if err := i.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("waiting for calls of other members: %w", err)
	}
	return nil
}

// openInternal opens the port and serves what will be mounted.
func (s *server) openInternal(ctx context.Context) error {
	if s.group == nil {
		return nil
	}
	own, _ := s.cfg.Members.Own()
	address, err := listenAddress(ctx, s.cfg.Members.Listen.Internal, own.Internal)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("opening the port for the other members: %w; members.list says which it is", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+changesPath, s.hearChanges)
	mux.HandleFunc("POST "+aboutPath, s.tellAbout)
	mux.HandleFunc("POST "+stepDownPath, s.hearStepDown)
	server := &http.Server{
		Handler: asMember(mux), ReadHeaderTimeout: internalHeader,
		IdleTimeout: max(s.cfg.Timeouts.Idle.Std(), internalIdle),
		TLSConfig:   membership.ServerTLS(s.group.credentials, s.memberNames()),
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols:   new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	s.group.internal = &internal{mux: mux, server: server}
	bounded := make(connectionLimit, internalConnections).apply(listener)
	go func() {
		if err := server.ServeTLS(bounded, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving the other members on %s: %w", address, err)
		}
	}()
	s.closers = append(s.closers, server.Close)
	return nil
}

type callerKey struct{}

// asMember notes which member calls. The handshake has made sure that it is one; who
// is not gets no further, whatever the listener let through.
func asMember(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := callerOf(r.TLS)
		if name == "" {
			http.Error(w, "only members may call", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, name)))
	})
}

func callerOf(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 {
		return ""
	}
	return bundle.MemberOf(state)
}
