// Package natstest runs clusters of embedded NATS servers for tests: a single server, or
// several servers on the loopback interface with a proxy for each direction between two of
// them. A test can stop, start and cut off each server and move stream leaders.
package natstest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver"
)

// unreachableAddr is the address that servers advertise. It is unreachable, because servers must
// connect through the proxies only.
const unreachableAddr = "127.0.0.1:9"

const (
	startTimeout = 60 * time.Second
	probeTimeout = 2 * time.Second
	clusterName  = "test"
	maxStore     = 4 << 30
)

// Cluster is a set of NATS servers.
type Cluster struct {
	t          testing.TB
	auth       *authority
	servers    []*node
	log        *slog.Logger
	unsafe     bool
	unverified bool
	ownProcess map[int]bool // servers that run in processes of their own
	waiting    func(server int, why string)
	verify     time.Duration
}

// node is a server that can be stopped and started.
type node struct {
	name    string
	dir     string
	files   *integrity.Register
	inbound []*proxy // by the index of the dialing server

	mu      sync.Mutex
	server  *natsserver.Server // nil while it is stopped; protected by mu
	process *process           // set instead of server for Processes; protected by mu
}

// Option configures a Cluster.
type Option func(*Cluster)

// Unsafe disables syncing, for tests that do not check durability.
func Unsafe(c *Cluster) { c.unsafe = true }

// Unverified disables the verification of files, for tests of what happens when it misses damage.
func Unverified(c *Cluster) { c.unverified = true }

// Processes runs some servers in processes of their own, so that Stop kills them. Connect
// does not work for them. The test package needs a TestMain that calls Served.
func Processes(servers ...int) Option {
	return func(c *Cluster) {
		c.ownProcess = map[int]bool{}
		for _, i := range servers {
			c.ownProcess[i] = true
		}
	}
}

// Waiting gets the reports of servers that wait for the others before they start.
func Waiting(report func(server int, why string)) Option {
	return func(c *Cluster) { c.waiting = report }
}

// VerifyInterval sets the interval in which running servers verify their files.
func VerifyInterval(d time.Duration) Option { return func(c *Cluster) { c.verify = d } }

// Logger sets the logger of the servers; by default their logs are discarded.
func Logger(log *slog.Logger) Option { return func(c *Cluster) { c.log = log } }

// New runs a cluster and waits until it is ready. The test's cleanup stops it.
func New(t testing.TB, servers int, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, log: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		o(c)
	}
	if servers > 1 {
		c.auth = newAuthority(t)
	}
	dir := t.TempDir()
	for i := range servers {
		s := &node{name: fmt.Sprintf("n%d", i), dir: filepath.Join(dir, fmt.Sprintf("n%d", i))}
		var err error
		if s.files, err = integrity.Open(s.dir+"-integrity", integrity.Options{Logger: c.log}); err != nil {
			t.Fatal(err)
		}
		for from := range servers {
			if servers == 1 || from == i {
				s.inbound = append(s.inbound, nil)
				continue
			}
			s.inbound = append(s.inbound, newProxy(t, s.routeAddr))
		}
		c.servers = append(c.servers, s)
	}
	t.Cleanup(c.close)
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() { c.start(i) })
	}
	wg.Wait()
	c.Ready()
	if servers > 1 {
		c.awaitPeers()
	}
	return c
}

// awaitPeers waits until streams can be placed on all servers. The meta leader treats a
// server as offline until it has been in contact with it.
func (c *Cluster) awaitPeers() {
	c.t.Helper()
	first := slices.IndexFunc(c.servers, (*node).isLocal)
	if first < 0 {
		return // all are processes of their own
	}
	conn, err := nats.Connect("", nats.InProcessServer(c.servers[first]))
	if err != nil {
		c.t.Fatalf("connecting to server %d: got error %v, want none", first, err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	probe := jetstream.StreamConfig{
		Name: "PROBE", Subjects: []string{"probe"}, Storage: jetstream.MemoryStorage,
		Replicas: len(c.servers),
	}
	c.CreateStream(ctx, js, probe)
	c.retry(ctx, "removing the probe stream", func(ctx context.Context) error {
		if err := js.DeleteStream(ctx, probe.Name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		return nil
	})
}

// CreateStream creates a stream. It retries, because a new meta leader may not have been in
// contact with all servers yet.
func (c *Cluster) CreateStream(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig) {
	c.t.Helper()
	c.retry(ctx, "placing stream "+config.Name, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateStream(ctx, config)
		return err
	})
}

// retry calls do until it succeeds, and fails the test when the context ends first.
func (c *Cluster) retry(ctx context.Context, what string, do func(context.Context) error) {
	c.t.Helper()
	err := retry.Do(ctx, retry.Backoff{Min: 20 * time.Millisecond}, func() (bool, error) {
		attempt, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		err := do(attempt)
		return err != nil, err
	})
	if err != nil {
		c.t.Fatalf("%s: got error %v, want none", what, err)
	}
}

// isLocal reports whether the server runs in this process.
func (s *node) isLocal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server != nil
}

// routeAddr returns the current listen address for routes; "" while the server is stopped.
func (s *node) routeAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return s.process.addr
	}
	if s.server == nil {
		return ""
	}
	if addr := s.server.RouteAddr(); addr != nil {
		return addr.String()
	}
	return ""
}

// InProcessConn implements nats.InProcessConnProvider.
func (s *node) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil, fmt.Errorf("server %s is stopped", s.name)
	}
	return s.server.InProcessConn()
}

func (c *Cluster) start(i int) {
	c.t.Helper()
	s := c.servers[i]
	var routes []string
	for to, other := range c.servers {
		if to != i {
			routes = append(routes, other.inbound[i].addr())
		}
	}
	if c.ownProcess[i] {
		p, err := startProcess(child{
			Name: s.name, Dir: s.dir, Routes: routes, Credentials: c.auth.sign(c.t, s.name),
			Unsafe: c.unsafe,
		})
		if err != nil {
			c.t.Errorf("starting server %d: got error %v, want none", i, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.process = p
		return
	}
	o := natsserver.Options{
		Name: s.name, Dir: s.dir, Unsafe: c.unsafe, Unverified: c.unverified, MaxStore: maxStore,
		Logger: c.log.With(slog.String("server", s.name)), Integrity: s.files, VerifyInterval: c.verify,
		CheckOthers: func(context.Context) error { return c.checkOthers(i) },
		ReportWaiting: func(why string) {
			if c.waiting != nil {
				c.waiting(i, why)
			}
		},
	}
	if len(c.servers) > 1 {
		o.ClusterName, o.Listen, o.Advertise, o.Routes, o.TLS = clusterName, "127.0.0.1:0", unreachableAddr, routes,
			c.auth.config(c.t, s.name)
	}
	server, err := natsserver.Start(context.Background(), o)
	if err != nil {
		c.t.Errorf("starting server %d: got error %v, want none", i, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
}

// checkOthers returns nil if all servers but one are current.
func (c *Cluster) checkOthers(i int) error {
	var problems []error
	for other := range c.servers {
		if other == i {
			continue
		}
		server := c.Server(other)
		if server == nil {
			problems = append(problems, fmt.Errorf("server %d is stopped", other))
		} else if err := server.Current(); err != nil {
			problems = append(problems, fmt.Errorf("server %d: %w", other, err))
		}
	}
	return errors.Join(problems...)
}

// Files returns the directory of a server's files.
func (c *Cluster) Files(i int) string { return filepath.Join(c.servers[i].dir, "jetstream") }

// State returns the directory in which a server keeps what it knows about its files.
func (c *Cluster) State(i int) string { return c.servers[i].dir + "-state" }

// Integrity returns the register of a server's files.
func (c *Cluster) Integrity(i int) *integrity.Register { return c.servers[i].files }

// Adopt makes the next Start of a server run it in this process.
func (c *Cluster) Adopt(i int) { c.ownProcess[i] = false }

// Start starts a server that Stop stopped, on the same directory.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	c.start(i)
}

// Stop closes a server, or kills its process. Connections that Connect opened to it
// reconnect after the next Start.
func (c *Cluster) Stop(i int) {
	s := c.servers[i]
	s.mu.Lock()
	server, process := s.server, s.process
	s.server, s.process = nil, nil
	s.mu.Unlock()
	if process != nil {
		process.kill()
	}
	if server != nil {
		server.Close()
	}
}

// Server returns a running server.
func (c *Cluster) Server(i int) *natsserver.Server {
	s := c.servers[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Dialer returns the in-process connections of a server, which may be stopped and started.
func (c *Cluster) Dialer(i int) nats.InProcessConnProvider { return c.servers[i] }

// Dir returns the data directory of a server.
func (c *Cluster) Dir(i int) string { return c.servers[i].dir }

// TLS returns a TLS configuration for routes to this cluster, which must have several
// servers.
func (c *Cluster) TLS(name string) *tls.Config {
	c.t.Helper()
	return c.auth.config(c.t, name)
}

// Size returns the number of servers.
func (c *Cluster) Size() int { return len(c.servers) }

// Connect opens a connection to one server. It reconnects after restarts of the server and
// is closed with the test.
func (c *Cluster) Connect(i int) *nats.Conn {
	c.t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(c.servers[i]), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1))
	if err != nil {
		c.t.Fatalf("connecting to server %d: got error %v, want none", i, err)
	}
	c.t.Cleanup(conn.Close)
	return conn
}

// Ready waits until every running server accepts writes.
func (c *Cluster) Ready() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for i := range c.servers {
		if s := c.Server(i); s != nil {
			if err := s.Ready(ctx); err != nil {
				c.t.Fatalf("server %d: got error %v, want it ready", i, err)
			}
		}
	}
}

// StepDown requests that the leader of a stream step down, and returns after its response.
func (c *Cluster) StepDown(ctx context.Context, conn *nats.Conn, stream string) error {
	_, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
	return err
}

// Lead makes a server the leader of a stream and reports whether it succeeded. Each request
// has a timeout, because a request that arrives while there is no leader gets no response.
func (c *Cluster) Lead(ctx context.Context, conn *nats.Conn, stream string, i int) bool {
	request := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, c.servers[i].name)
	for ctx.Err() == nil {
		leader := c.Leader(ctx, conn, stream)
		if leader == i {
			return true
		}
		if leader >= 0 {
			attempt, cancel := context.WithTimeout(ctx, probeTimeout)
			// Retried in the next round.
			_, _ = conn.RequestWithContext(attempt, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, request)
			cancel()
		}
		_ = retry.Sleep(ctx, 20*time.Millisecond)
	}
	return false
}

// Leader returns the index of the server that leads a stream, or -1 when there is none or
// no server responds in time.
func (c *Cluster) Leader(ctx context.Context, conn *nats.Conn, stream string) int {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return -1
	}
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return -1
	}
	for i, candidate := range c.servers {
		if candidate.name == s.CachedInfo().Cluster.Leader {
			return i
		}
	}
	return -1
}

// Cut isolates a server from the others in both directions until Heal.
func (c *Cluster) Cut(i int) { c.block(i, true) }

// Heal undoes Cut.
func (c *Cluster) Heal(i int) { c.block(i, false) }

func (c *Cluster) block(i int, cut bool) {
	for j, other := range c.servers {
		if j != i {
			c.servers[i].inbound[j].set(cut)
			other.inbound[i].set(cut)
		}
	}
}

func (c *Cluster) close() {
	var wg sync.WaitGroup
	for i := range c.servers {
		wg.Go(func() { c.Stop(i) })
	}
	wg.Wait()
}
