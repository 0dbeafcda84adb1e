package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"freshet/internal/base/proxies"
)

// Ports contains the open HTTP ports. They are opened early, so that an address in use is
// reported before anything else happens.
type Ports struct {
	opts             Options
	http, https, ops net.Listener
	raw              []*net.TCPListener // the same, without wrappers
	secured          *tlsListener       // nil without HTTPS
	servers          []*http.Server
	connections      connections
}

// Options are the settings of Open.
type Options struct {
	// HTTP, HTTPS and Ops are the addresses to listen on, or nil for a port that is off.
	// Open replaces port 0 with the real port.
	HTTP, HTTPS, Ops *string
	// Connections is the connection limit of each of HTTP and HTTPS, Shared their common one.
	// The ops port has a small limit of its own.
	Connections int
	Shared      Limit

	// ReadHeader and Idle are the timeouts for the header of a request and of an idle
	// connection. HeaderSize is the largest header that the handlers accept.
	ReadHeader, Idle time.Duration
	HeaderSize       int

	// Proxied reports whether the proxies on a port, http or https, send the PROXY protocol.
	// Trusted are their addresses.
	Proxied func(port string) bool
	Trusted proxies.Set

	Log    *slog.Logger
	Failed chan<- error // receives the error of a port that fails while it is served
}

// Refuser replaces the error responses of net/http. It attaches to each server and watches
// the connections of its listener.
type Refuser interface {
	Attach(server *http.Server)
	Watch(listener net.Listener) net.Listener
}

const opsConnections = 64

// Open opens the ports.
func Open(ctx context.Context, opts Options) (*Ports, error) {
	l := &Ports{opts: opts}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // its sockets ignore the filter of dropNewConnections
	for _, port := range []struct {
		name    string
		address *string
		to      *net.Listener
		limits  []Limit
	}{
		{"http", opts.HTTP, &l.http, []Limit{opts.Shared, NewLimit(opts.Connections)}},
		{"https", opts.HTTPS, &l.https, []Limit{opts.Shared, NewLimit(opts.Connections)}},
		{"ops", opts.Ops, &l.ops, []Limit{NewLimit(opsConnections)}},
	} {
		if port.address == nil {
			continue
		}
		listener, err := plain.Listen(ctx, "tcp", *port.address)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("opening the %s port: %w; choose another one with --%s", port.name, err, port.name)
		}
		*port.address = WithPort(*port.address, listener.Addr())
		if tcp, ok := listener.(*net.TCPListener); ok {
			l.raw = append(l.raw, tcp)
		}
		for _, limit := range port.limits {
			listener = limit.Apply(listener)
		}
		if opts.Proxied != nil && opts.Proxied(port.name) {
			listener = AcceptProxied(listener, opts.Trusted, opts.ReadHeader)
		}
		*port.to = listener
	}
	return l, nil
}

// WithPort returns the host of a configured address with the port of the open listener.
func WithPort(address string, real net.Addr) string {
	host, _, err := net.SplitHostPort(address)
	tcp, ok := real.(*net.TCPAddr)
	if err != nil || !ok {
		return real.String()
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// Close closes the ports.
func (l *Ports) Close() {
	for _, listener := range []net.Listener{l.http, l.https, l.ops} {
		if listener != nil {
			_ = listener.Close() // usually its server has closed it already
		}
	}
}

// ServeOps starts serving the ops port. refused replaces the error responses of net/http.
func (l *Ports) ServeOps(ops http.Handler, refused Refuser) {
	if l.ops != nil {
		server := l.newServer(ops)
		refused.Attach(server)
		l.start(server, refused.Watch(l.ops))
	}
}

// ServeMain starts serving HTTP and HTTPS. refused replaces the error responses of net/http.
func (l *Ports) ServeMain(main http.Handler, refused Refuser, tlsConfig *tls.Config) {
	if l.http != nil {
		server := l.newServer(main)
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		refused.Attach(server)
		l.start(server, refused.Watch(l.http))
	}
	if l.https != nil {
		secured := listenTLS(l.https, tlsConfig, l.opts.ReadHeader)
		l.secured = secured
		server := l.newServer(main)
		refused.Attach(server)
		l.start(server, refused.Watch(secured.http1))
		server = l.newServer(main)
		server.TLSConfig = tlsConfig
		l.start(server, secured.http2)
	}
}

func (l *Ports) start(server *http.Server, listener net.Listener) {
	l.servers = append(l.servers, server)
	l.connections.track(server)
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			l.opts.Failed <- fmt.Errorf("serving on %s: %w", listener.Addr(), err)
		}
	}()
}

// headerSlack is the factor by which net/http reads more of a header than is accepted, so that
// most requests with a header that is too large get the error response of their surface, also
// over HTTP/2.
const headerSlack = 2

func (l *Ports) newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: l.opts.ReadHeader,
		IdleTimeout:       l.opts.Idle,
		MaxHeaderBytes:    headerSlack * l.opts.HeaderSize,
		ErrorLog:          slog.NewLogLogger(l.opts.Log.Handler(), slog.LevelDebug),
	}
}
