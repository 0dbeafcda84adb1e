package natsserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"freshet/internal/base/errs"
)

// Options says how a server runs. Name and Dir are required.
type Options struct {
	// Name of this server, unlike that of every other one of the group and the
	// same after a restart.
	Name string
	// ClusterName is the same on all servers of a group.
	ClusterName string
	// Dir is where streams are kept. It is made when it is not there.
	Dir string
	// Listen is the address for routes from the other servers; "" for a server
	// that is alone, which listens nowhere. Port 0 takes any.
	Listen string
	// Advertise is the address that others are told to reach Listen at, where
	// that differs; "" for Listen itself.
	Advertise string
	// Routes are the addresses (host:port) of all other servers of the group. How
	// many there are says what a majority is, so they must all be named.
	Routes []string
	// TLS secures routes, both ways: certificate, RootCAs and ClientCAs. Required
	// with Listen. ServerName is what certificates are checked for; when it is
	// empty, the host of the route is.
	TLS *tls.Config
	// MaxPayload bounds one message; 0 means 16 MiB, and less than 8 MiB is refused.
	MaxPayload int32
	// MaxStore bounds the bytes of all streams on this server; 0 means three
	// quarters of what is free on the disk at the start.
	MaxStore int64
	// Unsafe leaves out syncing. For tests that do not look at durability.
	Unsafe bool
	// Logger gets what the server has to say; nil means slog.Default().
	Logger *slog.Logger
}

const (
	// MinMaxPayload is how large a message must be allowed to be.
	MinMaxPayload     = 8 << 20
	defaultMaxPayload = 16 << 20
	maxPending        = 128 << 20 // bytes that wait for a slow reader before it is cut off
	maxMemory         = 64 << 20  // for streams in memory, which nobody makes
	startTimeout      = 60 * time.Second
	readyInterval     = 50 * time.Millisecond
	catchUpTimeout    = 20 * time.Second // for streams, once there is a majority
	routeTimeout      = 5                // seconds for a handshake of a route
)

// ErrNotReady says that the server cannot take writes at the moment.
var ErrNotReady = errs.New(errs.Unavailable, "replicated log is not ready: fewer than half of the members can be "+
	"reached, or this one has just started; try again shortly")

// Server is a running server. When it has to stop its streams because it cannot write
// them, it is started anew as soon as there is room (revive.go).
type Server struct {
	opts Options
	log  *bridge
	dir  string
	nats atomic.Pointer[server.Server]

	started chan struct{} // of the server that runs: closed when it has begun, or failed to

	cancel  context.CancelFunc
	watched sync.WaitGroup // ends with cancel

	mu    sync.Mutex
	conns []*nats.Conn // to be closed with the server; guarded by mu
}

// Start runs a server. It returns when connections can be made; with peers, that
// is before there is a majority, see Ready.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{opts: o, log: newBridge(o.Logger), dir: o.Dir}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	setElections()
	if err := s.launch(ctx); err != nil {
		if s.nats.Load() != nil {
			s.Close()
		}
		return nil, fmt.Errorf("starting the replicated log: %w", err)
	}
	s.watched.Go(func() { s.watch(watching) })
	return s, nil
}

// launch makes a server and starts it. Start calls it, and then watch alone.
func (s *Server) launch(ctx context.Context) error {
	opts, err := s.opts.server()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making its directory: %w", err)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("in %s: %w", s.dir, err)
	}
	log := newBridge(s.opts.Logger)
	ns.SetLoggerV2(log, false, false, false)
	s.started = make(chan struct{})
	s.nats.Store(ns)
	if err := s.start(ctx, ns, log); err != nil {
		return fmt.Errorf("in %s: %w", s.dir, err)
	}
	if s.opts.Listen != "" {
		s.opts.Listen = ns.ClusterAddr().String() // the same when it is started anew
	}
	return nil
}

func (s *Server) start(ctx context.Context, ns *server.Server, log *bridge) error {
	started, routes := s.started, s.opts.Listen != ""
	go func() {
		defer close(started)
		ns.Start()
		if routes && !log.failed.Load() {
			startRoutes(ns)
		}
	}()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-started:
	case err := <-log.fatal:
		return err
	case <-timer.C:
		return fmt.Errorf("server was not ready within %s", startTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-log.fatal: // it says so and goes on without
		return err
	default:
	}
	if !ns.JetStreamEnabled() {
		return errors.New("streams could not be opened")
	}
	return nil
}

// startRoutes opens the listener for routes. The server does so by itself when it
// has opened the one for clients, which it does not have: the part of it that
// waits for that waits for ever, and this call takes its place, in the count of
// what has to end before the server has stopped, too.
func startRoutes(ns *server.Server) {
	open := make(chan struct{})
	close(open)
	ns.StartRouting(open)
}

func (o Options) server() (*server.Options, error) {
	if o.Name == "" || o.Dir == "" {
		return nil, errors.New("a name and a directory are required")
	}
	so := &server.Options{
		ServerName:         o.Name,
		DontListen:         true,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           o.Dir,
		SyncAlways:         !o.Unsafe,
		JetStreamMaxMemory: maxMemory,
		JetStreamMaxStore:  o.MaxStore,
		MaxPayload:         cmp.Or(o.MaxPayload, defaultMaxPayload),
		MaxPending:         maxPending,

		DisableJetStreamBanner: true,
	}
	if so.MaxPayload < MinMaxPayload {
		return nil, fmt.Errorf("messages of %d bytes at most are too small, want %d or more", so.MaxPayload,
			MinMaxPayload)
	}
	if o.Listen == "" {
		if len(o.Routes) > 0 {
			return nil, errors.New("there are routes but no address to listen on for them")
		}
		return so, nil
	}
	return so, o.cluster(so)
}

func (o Options) cluster(so *server.Options) error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("address for routes: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("address for routes %q: port: %w", o.Listen, err)
	}
	if o.ClusterName == "" || len(o.Routes) == 0 {
		return errors.New("a server that listens for others needs the name of the cluster and their addresses")
	}
	tlsConfig, err := mutual(o.TLS)
	if err != nil {
		return err
	}
	so.Cluster = server.ClusterOpts{
		Name: o.ClusterName, Host: host, Port: int(n), Advertise: o.Advertise,
		TLSConfig: tlsConfig, TLSTimeout: routeTimeout, AuthTimeout: 2 * routeTimeout,
		Compression:  server.CompressionOpts{Mode: server.CompressionOff},
		NoAdvertise:  true, // there is nothing for clients to know
		PingInterval: 2 * time.Second, MaxPingsOut: 2,
	}
	if n == 0 {
		so.Cluster.Port = server.RANDOM_PORT
	}
	for _, r := range o.Routes {
		if _, _, err := net.SplitHostPort(r); err != nil {
			return fmt.Errorf("address of another server: %w", err)
		}
		so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", Host: r})
	}
	return nil
}

// mutual returns the configuration with both sides checked.
func mutual(c *tls.Config) (*tls.Config, error) {
	switch {
	case c == nil:
		return nil, errors.New("routes need TLS: a certificate and the authority of the group")
	case c.RootCAs == nil || c.ClientCAs == nil:
		return nil, errors.New("routes need the authority of the group, for both sides: RootCAs and ClientCAs")
	case len(c.Certificates) == 0 && (c.GetCertificate == nil || c.GetClientCertificate == nil):
		return nil, errors.New("routes need a certificate for both sides")
	case c.InsecureSkipVerify:
		return nil, errors.New("routes do not skip the check of certificates")
	}
	c = c.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.MinVersion = tls.VersionTLS13
	return c, nil
}

// RouteAddr is the address that routes are taken on; nil for a server that is alone.
func (s *Server) RouteAddr() *net.TCPAddr { return s.nats.Load().ClusterAddr() }

// Close ends the server and the connections that Connect made. It hands over
// what this server leads first.
func (s *Server) Close() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	s.cancel()
	s.watched.Wait()
	<-s.started
	s.handOver()
	alone := s.RouteAddr() == nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.end()
	}()
	if alone {
		<-ended
		return
	}
	s.awaitStored(ended)
}

// strandedPatience is how long Close waits for connections that are being made.
const strandedPatience = 500 * time.Millisecond

// awaitStored returns when the server has ended, or shortly after it has closed all
// that it stores: then it takes no routes any more, and what is left is handshakes with
// servers that may be silent, for five seconds each.
func (s *Server) awaitStored(ended <-chan struct{}) {
	tick := time.NewTicker(handOverInterval)
	defer tick.Stop()
	var stored time.Time
	for {
		select {
		case <-ended:
			return
		case now := <-tick.C:
			if stored.IsZero() && s.RouteAddr() == nil {
				stored = now
			}
			if !stored.IsZero() && now.Sub(stored) > strandedPatience {
				return
			}
		}
	}
}

// end ends the server that runs.
func (s *Server) end() {
	ns := s.nats.Load()
	ns.Shutdown()
	ns.WaitForShutdown()
}
