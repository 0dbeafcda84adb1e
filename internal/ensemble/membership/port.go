package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"freshet/internal/ensemble/bundle"
)

const (
	portHeaderTimeout = 10 * time.Second
	portIdleTimeout   = time.Minute // the minimum; callers close idle connections earlier
)

// Port is the port for calls between members: mutual TLS, with HTTP/2, or HTTP/1.1 for small
// forwarded requests. Its handlers trust their callers completely, because these are members.
type Port struct {
	mux    *http.ServeMux
	server *http.Server
}

// ConnectionLimit bounds the open connections of listeners.
type ConnectionLimit interface {
	// Apply returns a listener that accepts connections only below the limit.
	Apply(l net.Listener) net.Listener
}

// PortOptions configures a port. All fields are required.
type PortOptions struct {
	Address     string
	Credentials *bundle.Credentials
	Members     []string // names of the members that may call
	IdleTimeout time.Duration
	Limit       ConnectionLimit
	// Failed gets the error when the port ends without Shutdown or Close.
	Failed chan<- error
	Log    *slog.Logger
}

// OpenPort opens the port and serves the handlers that are or will be mounted.
func OpenPort(ctx context.Context, o PortOptions) (*Port, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("opening the internal port of members.list: %w", err)
	}
	mux := http.NewServeMux()
	p := &Port{mux: mux, server: &http.Server{
		Handler: requireMember(mux), ReadHeaderTimeout: portHeaderTimeout,
		IdleTimeout: max(o.IdleTimeout, portIdleTimeout),
		TLSConfig:   ServerTLS(o.Credentials, o.Members),
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		Protocols:   new(http.Protocols),
	}}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetHTTP2(true)
	bounded := o.Limit.Apply(listener)
	go func() {
		if err := p.server.ServeTLS(bounded, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
			o.Failed <- fmt.Errorf("serving the other members on %s: %w", o.Address, err)
		}
	}()
	return p, nil
}

// Handle mounts a handler. Before that, callers get 404 and retry.
func (p *Port) Handle(pattern string, handler http.Handler) { p.mux.Handle(pattern, handler) }

// Shutdown closes the port and waits for running calls.
func (p *Port) Shutdown(ctx context.Context) error {
	if err := p.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("waiting for calls of other members: %w", err)
	}
	return nil
}

// Close closes the port and aborts running calls.
func (p *Port) Close() error { return p.server.Close() }

// requireMember rejects callers that are not members. The TLS handshake has already verified
// the certificate; this is a second check.
func requireMember(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || bundle.PeerMember(r.TLS) == "" {
			http.Error(w, "caller is not a member of the ensemble", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
