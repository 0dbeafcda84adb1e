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
	"freshet/internal/ensemble/integrity"
)

// Options configures a server. Name and Dir are required.
type Options struct {
	// Name identifies this server. It is unique in the ensemble and stays the same after a
	// restart.
	Name string
	// ClusterName is the same on all servers of an ensemble.
	ClusterName string
	// Dir is the directory of the streams. Start creates it if it does not exist.
	Dir string
	// Listen is the address for routes from the other servers; "" for a single server,
	// which does not listen. Port 0 selects a free port.
	Listen string
	// Advertise is the address that the server announces to its peers when it differs from
	// Listen; "" announces Listen.
	Advertise string
	// Routes are the addresses (host:port) of all other servers of the ensemble. Their
	// number determines the majority, so the list must be complete.
	Routes []string
	// TLS secures routes in both directions: certificate, RootCAs and ClientCAs. Required
	// with Listen. Certificates are verified for ServerName, or for the host of the route
	// when it is empty.
	TLS *tls.Config
	// MaxPayload bounds one message; 0 means 16 MiB, less than 8 MiB is an error.
	MaxPayload int32
	// MaxStore bounds the bytes of all streams on this server; 0 means three quarters of
	// the free disk space at the start.
	MaxStore int64
	// Unsafe disables syncing, for tests that do not check durability.
	Unsafe bool
	// Unverified disables the verification of files, for tests of what happens when it misses damage.
	Unverified bool
	// Logger receives the server's log; nil means slog.Default().
	Logger *slog.Logger
	// Integrity records damage of the streams' files; nil records nothing.
	Integrity *integrity.Register
	// CheckOthers returns nil if every other server runs, has caught up with all its streams and knows
	// all servers (Server.Current). A server with damaged files rejoins the others only then. Without
	// CheckOthers it does not start.
	CheckOthers func(ctx context.Context) error
	// ReportWaiting is called from time to time while Start waits for CheckOthers; nil reports nothing.
	ReportWaiting func(why string)
	// VerifyInterval is the time in which the running server reads all its full blocks and snapshots
	// again; 0 means a week.
	VerifyInterval time.Duration
}

const (
	// MinMaxPayload is the smallest acceptable limit for the size of a message.
	MinMaxPayload     = 8 << 20
	defaultMaxPayload = 16 << 20
	maxPending        = 128 << 20 // bytes buffered for a slow client before the server disconnects it
	maxMemory         = 64 << 20  // for streams in memory, which Freshet does not create
	startTimeout      = 60 * time.Second
	readyInterval     = 50 * time.Millisecond
	catchUpTimeout    = 20 * time.Second // for streams to catch up, once there is a majority
	routeTimeout      = 5                // seconds for the TLS handshake of a route
)

// ErrNotReady is returned while the server cannot accept writes.
var ErrNotReady = errs.New(errs.Unavailable, "replicated log is not ready: fewer than half of the members can be "+
	"reached, or this one has just started; try again shortly")

// Server is a running server. After it has stopped its streams because a write failed, it
// is restarted as soon as the disk has enough free space (restart.go).
type Server struct {
	opts Options
	log  *logAdapter
	dir  string
	nats atomic.Pointer[server.Server]

	started chan struct{} // of the current server: closed when its start has succeeded or failed

	suspicions chan suspicion // for the watch goroutine
	examined   time.Time      // when it last examined one
	// foundIntact is when an examination last found no damage; zero if the files were replaced since.
	foundIntact time.Time
	floors      *floorRecorder         // used by the watch goroutine
	healthy     int                    // successive checks of a rejoining server, in the watch goroutine
	running     bool                   // the current server was started on files that verified
	rejoining   atomic.Bool            // the files are being fetched from the other servers
	waiting     atomic.Pointer[string] // why the server does not run yet, for Health

	cancel   context.CancelFunc
	watching sync.WaitGroup // the watch and scrub goroutines, which end with cancel

	mu    sync.Mutex
	conns []*nats.Conn // closed with the server; protected by mu
}

// Start runs a server. It returns when clients can connect. With peers, that is before
// there is a majority: use Ready to wait for one.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{opts: o, log: newLogAdapter(o.Logger), dir: o.Dir, suspicions: make(chan suspicion, 1)}
	s.floors = newFloorRecorder(s)
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	setElectionTimeouts()
	if err := s.open(ctx); err != nil {
		if s.nats.Load() != nil {
			s.Close()
		}
		return nil, fmt.Errorf("starting the replicated log: %w", err)
	}
	s.watching.Go(func() { s.watch(watching) })
	s.watching.Go(func() { s.scrub(watching) })
	return s, nil
}

// launch creates a server and starts it. Start calls launch first; afterwards only the
// watch goroutine does.
func (s *Server) launch(ctx context.Context) error {
	opts, err := s.opts.server()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("creating directory %s: %w", s.dir, err)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("configuring the server in %s: %w", s.dir, err)
	}
	log := newLogAdapter(s.opts.Logger)
	log.corrupt = s.suspectFiles
	ns.SetLoggerV2(log, false, false, false)
	s.started = make(chan struct{})
	s.nats.Store(ns)
	if err := s.start(ctx, ns, log); err != nil {
		return fmt.Errorf("starting the server in %s: %w", s.dir, err)
	}
	if s.opts.Listen != "" {
		s.opts.Listen = ns.ClusterAddr().String() // keep the port for restarts
	}
	s.running = true
	return nil
}

func (s *Server) start(ctx context.Context, ns *server.Server, log *logAdapter) error {
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
	case err := <-log.fatal: // the server logs the error and continues without JetStream
		return err
	default:
	}
	if !ns.JetStreamEnabled() {
		return errors.New("streams could not be opened")
	}
	return nil
}

// startRoutes opens the listener for routes. nats-server opens it after the client
// listener, which this server does not have, so the goroutine that nats-server started for
// that blocks forever. This call replaces that goroutine, also in the server's WaitGroup:
// StartRouting calls its Done.
func startRoutes(ns *server.Server) {
	open := make(chan struct{})
	close(open)
	ns.StartRouting(open)
}

func (o Options) server() (*server.Options, error) {
	if o.Name == "" || o.Dir == "" {
		return nil, errors.New("options Name and Dir are required")
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
		return nil, fmt.Errorf("option MaxPayload is %d bytes, want at least %d", so.MaxPayload,
			MinMaxPayload)
	}
	if o.Listen == "" {
		if len(o.Routes) > 0 {
			return nil, errors.New("option Routes is set without Listen")
		}
		return so, nil
	}
	return so, o.cluster(so)
}

func (o Options) cluster(so *server.Options) error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("parsing the listen address for routes: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("parsing the port of the listen address for routes %q: %w", o.Listen, err)
	}
	if o.ClusterName == "" || len(o.Routes) == 0 {
		return errors.New("option Listen requires ClusterName and Routes")
	}
	tlsConfig, err := mutualTLS(o.TLS)
	if err != nil {
		return err
	}
	so.Cluster = server.ClusterOpts{
		Name: o.ClusterName, Host: host, Port: int(n), Advertise: o.Advertise,
		TLSConfig: tlsConfig, TLSTimeout: routeTimeout, AuthTimeout: 2 * routeTimeout,
		Compression:  server.CompressionOpts{Mode: server.CompressionOff},
		NoAdvertise:  true, // there are no client listeners to advertise
		PingInterval: 2 * time.Second, MaxPingsOut: 2,
	}
	if n == 0 {
		so.Cluster.Port = server.RANDOM_PORT
	}
	for _, r := range o.Routes {
		if _, _, err := net.SplitHostPort(r); err != nil {
			return fmt.Errorf("parsing the address of another server: %w", err)
		}
		so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", Host: r})
	}
	return nil
}

// mutualTLS returns the configuration with mutual authentication enforced.
func mutualTLS(c *tls.Config) (*tls.Config, error) {
	switch {
	case c == nil:
		return nil, errors.New("routes need TLS: a certificate and the ensemble's certificate authority")
	case c.RootCAs == nil || c.ClientCAs == nil:
		return nil, errors.New("routes need the ensemble's certificate authority in RootCAs and in ClientCAs")
	case len(c.Certificates) == 0 && (c.GetCertificate == nil || c.GetClientCertificate == nil):
		return nil, errors.New("routes need a certificate as client and as server")
	case c.InsecureSkipVerify:
		return nil, errors.New("routes cannot skip certificate verification")
	}
	c = c.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.MinVersion = tls.VersionTLS13
	return c, nil
}

// RouteAddr returns the listen address for routes; nil for a single or stopped server.
func (s *Server) RouteAddr() *net.TCPAddr { return s.nats.Load().ClusterAddr() }

// Close closes the connections that Connect opened, hands over the streams that this server
// leads, stops the server and records the state of its files.
func (s *Server) Close() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	s.cancel()
	s.watching.Wait()
	<-s.started
	s.handOver()
	alone := s.RouteAddr() == nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.shutdown()
	}()
	if alone {
		<-ended
	} else {
		s.awaitShutdown(ended)
	}
	select {
	case <-ended:
		s.recordStop()
	default: // files may still change, so the next start reads them
	}
}

// handshakeTimeout is how long Close waits for route handshakes in progress.
const handshakeTimeout = 500 * time.Millisecond

// awaitShutdown returns when the server has stopped, or handshakeTimeout after it has closed
// its streams. By then it accepts no routes; only handshakes with unresponsive servers can
// remain, which take up to five seconds each.
func (s *Server) awaitShutdown(ended <-chan struct{}) {
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
			if !stored.IsZero() && now.Sub(stored) > handshakeTimeout {
				return
			}
		}
	}
}

// stop stops the current server to start it again.
func (s *Server) stop() {
	s.running = false
	s.shutdown()
	<-s.started
}

// shutdown stops the current server.
func (s *Server) shutdown() {
	ns := s.nats.Load()
	ns.Shutdown()
	ns.WaitForShutdown()
}
