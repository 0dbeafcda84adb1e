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

// listeners are the open ports. They are opened first, so that a port that is
// taken is told before anything else happens.
type listeners struct {
	http, https, ops net.Listener
	raw              []*net.TCPListener // the same, as the kernel knows them
	secured          *tlsListener       // nil without HTTPS
	servers          []*http.Server
	connections      connections
}

const opsConnections = 64

// listen opens the ports and writes the real addresses back into the
// configuration, for ports that were given as 0. Connections to HTTP and HTTPS
// share the room; the operator's port takes a few of its own.
func listen(ctx context.Context, cfg *config.Config, room connectionLimit) (*listeners, error) {
	l := &listeners{}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // its sockets ignore the filter of refuseNew
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

// withPort keeps the host of a configured address and takes the port that was
// really opened.
func withPort(address string, real net.Addr) string {
	host, _, err := net.SplitHostPort(address)
	tcp, ok := real.(*net.TCPAddr)
	if err != nil || !ok {
		return real.String()
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// close gives the ports back.
func (l *listeners) close() {
	for _, listener := range []net.Listener{l.http, l.https, l.ops} {
		if listener != nil {
			_ = listener.Close() // closed by its server already, most of the time
		}
	}
}

// serveOps starts answering on the operator's port. Failures end up in failed.
func (l *listeners) serveOps(cfg *config.Config, ops http.Handler, log *slog.Logger, failed chan<- error) {
	if l.ops != nil {
		l.start(newHTTPServer(cfg, ops, log), l.ops, failed)
	}
}

// serveMain starts answering on HTTP and HTTPS, refused where net/http would do it
// by itself. Failures end up in failed.
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
	l.connections.follow(server)
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving on %s: %w", listener.Addr(), err)
		}
	}()
}

// headerSlack is how much more of a header net/http reads than is taken, so that
// most of those that are too large get an answer in their surface's form, over
// HTTP/2 too.
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
