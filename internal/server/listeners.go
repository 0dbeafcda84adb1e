package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"freshet/internal/config"
)

// listeners contains the open ports. They are opened early, so that an address in use is
// reported before anything else happens.
type listeners struct {
	http, https, ops net.Listener
	raw              []*net.TCPListener // the same, without wrappers
	secured          *tlsListener       // nil without HTTPS
	servers          []*http.Server
	connections      connections
}

const opsConnections = 64

// listen opens the ports and writes the real addresses into the configuration, for ports
// that are configured as 0. HTTP and HTTPS share one connection limit in addition to their
// own; the ops port has a small limit of its own.
func listen(ctx context.Context, cfg *config.Config, room connectionLimit) (*listeners, error) {
	l := &listeners{}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // its sockets ignore the filter of dropNewConnections
	for _, port := range []struct {
		name    string
		address *string
		to      *net.Listener
		limits  []connectionLimit
	}{
		{"http", &cfg.HTTP, &l.http, []connectionLimit{room, make(connectionLimit, cfg.Limits.Connections)}},
		{"https", &cfg.HTTPS, &l.https, []connectionLimit{room, make(connectionLimit, cfg.Limits.Connections)}},
		{"ops", &cfg.Ops, &l.ops, []connectionLimit{make(connectionLimit, opsConnections)}},
	} {
		if *port.address == config.Off {
			continue
		}
		listener, err := plain.Listen(ctx, "tcp", *port.address)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("opening the %s port: %w; choose another one with --%s", port.name, err, port.name)
		}
		*port.address = withPort(*port.address, listener.Addr())
		if tcp, ok := listener.(*net.TCPListener); ok {
			l.raw = append(l.raw, tcp)
		}
		for _, limit := range port.limits {
			listener = limit.apply(listener)
		}
		*port.to = listener
	}
	return l, nil
}

// withPort returns the host of a configured address with the port of the open listener.
func withPort(address string, real net.Addr) string {
	host, _, err := net.SplitHostPort(address)
	tcp, ok := real.(*net.TCPAddr)
	if err != nil || !ok {
		return real.String()
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// close closes the ports.
func (l *listeners) close() {
	for _, listener := range []net.Listener{l.http, l.https, l.ops} {
		if listener != nil {
			_ = listener.Close() // usually its server has closed it already
		}
	}
}

// serveOps starts serving the ops port. It sends errors to failed.
func (l *listeners) serveOps(cfg *config.Config, ops http.Handler, log *slog.Logger, failed chan<- error) {
	if l.ops != nil {
		l.start(newHTTPServer(cfg, ops, log), l.ops, failed)
	}
}

// serveMain starts serving HTTP and HTTPS. refused replaces the error responses of net/http.
// It sends errors to failed.
func (l *listeners) serveMain(cfg *config.Config, main http.Handler, refused *refusals, tlsConfig *tls.Config,
	log *slog.Logger, failed chan<- error,
) {
	if l.http != nil {
		server := newHTTPServer(cfg, main, log)
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		refused.attach(server)
		l.start(server, refused.watch(l.http), failed)
	}
	if l.https != nil {
		secured := listenTLS(l.https, tlsConfig, cfg.Timeouts.ReadHeader.Std())
		l.secured = secured
		server := newHTTPServer(cfg, main, log)
		refused.attach(server)
		l.start(server, refused.watch(secured.http1), failed)
		server = newHTTPServer(cfg, main, log)
		server.TLSConfig = tlsConfig
		l.start(server, secured.http2, failed)
	}
}

func (l *listeners) start(server *http.Server, listener net.Listener, failed chan<- error) {
	l.servers = append(l.servers, server)
	l.connections.track(server)
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving on %s: %w", listener.Addr(), err)
		}
	}()
}

// headerSlack is the factor by which net/http reads more of a header than is accepted, so that
// most requests with a header that is too large get the error response of their surface, also
// over HTTP/2.
const headerSlack = 2

func newHTTPServer(cfg *config.Config, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cfg.Timeouts.ReadHeader.Std(),
		IdleTimeout:       cfg.Timeouts.Idle.Std(),
		MaxHeaderBytes:    headerSlack * int(cfg.Limits.HeaderSize),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
