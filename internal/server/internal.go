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
	"freshet/internal/ops/listen"
)

const (
	// internalConnections is far more than the members open: one each, 64 for forwarded
	// requests, and broken ones.
	internalConnections = 1024
	internalHeader      = 10 * time.Second
	internalIdle        = time.Minute // the minimum; callers close idle connections earlier
)

// internalPort is the port for calls between members: mutual TLS, with HTTP/2, or HTTP/1.1 for
// small forwarded requests. Its handlers trust their callers completely, because these are
// members.
type internalPort struct {
	mux    *http.ServeMux
	server *http.Server
}

// handle mounts a handler. Before that, callers get 404 and retry.
func (i *internalPort) handle(pattern string, handler http.Handler) { i.mux.Handle(pattern, handler) }

// shutdown closes the port and waits for running calls.
func (i *internalPort) shutdown(ctx context.Context) error {
	if err := i.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("waiting for calls of other members: %w", err)
	}
	return nil
}

// openInternal opens the port and serves the handlers that are or will be mounted.
func (s *server) openInternal(ctx context.Context) error {
	if s.ensemble == nil {
		return nil
	}
	own, _ := s.cfg.Members.Own()
	address, err := listenAddress(ctx, s.cfg.Members.Listen.Internal, own.Internal)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("opening the internal port of members.list: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+changesPath, s.serveChanges)
	mux.HandleFunc("POST "+aboutPath, s.serveAbout)
	mux.HandleFunc("POST "+stepDownPath, s.serveStepDown)
	server := &http.Server{
		Handler: requireMember(mux), ReadHeaderTimeout: internalHeader,
		IdleTimeout: max(s.cfg.Timeouts.Idle.Std(), internalIdle),
		TLSConfig:   membership.ServerTLS(s.ensemble.credentials, s.memberNames()),
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols:   new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	s.ensemble.internal = &internalPort{mux: mux, server: server}
	bounded := listen.NewLimit(internalConnections).Apply(listener)
	go func() {
		if err := server.ServeTLS(bounded, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving the other members on %s: %w", address, err)
		}
	}()
	s.closers = append(s.closers, server.Close)
	return nil
}

type callerKey struct{}

// requireMember rejects callers that are not members, and adds the name of the calling member to
// the context. The TLS handshake has already verified the certificate; this is a second check.
func requireMember(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := callerOf(r.TLS)
		if name == "" {
			http.Error(w, "caller is not a member of the ensemble", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, name)))
	})
}

func callerOf(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 {
		return ""
	}
	return bundle.PeerMember(state)
}
