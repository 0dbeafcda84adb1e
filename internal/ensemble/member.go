package ensemble

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/forwarding"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/storage/engine"
)

// HandOverTimeout is the timeout for handing shards over when the server stops. Other members
// take the remaining shards when this member's lease has expired.
const HandOverTimeout = 3 * time.Second

// Options configures a member. All fields are required.
type Options struct {
	Self    string
	Members []bundle.Member // all of them, in the order of the configuration
	// BundleDir is the directory with the certificates of this member.
	BundleDir string
	// IntegrityDir is the directory of the register of this member's files.
	IntegrityDir string
	Requests     forwarding.Requests
	Log          *slog.Logger
}

// Member is a member of an ensemble (docs/adr/0031-members.md).
type Member struct {
	opts        Options
	names       []string
	credentials *bundle.Credentials
	joining     bundle.JoinConfig
	integrity   *integrity.Register
	network     *membership.Network
	forwarder   *forwarding.Forwarder
	changes     changeReceiver
	leadership  leadership
	clocks      *clocks
	port        *membership.Port // nil before Listen
	leave       func()           // releases the lease; nil before Join
	etcd        Etcd             // set before membership

	membership atomic.Pointer[membership.Ensemble] // nil before Join
	log        atomic.Pointer[natsserver.Log]      // nil before UseLog
	applied    atomic.Pointer[func() map[string]uint64]

	poke            chan struct{} // requests an observation
	clusterProblems atomic.Pointer[func() map[string]string]
	health          atomic.Pointer[Health]      // nil before Observe
	observation     atomic.Pointer[Observation] // nil before Observe
}

// Open reads the certificate of a member. It opens no port and no connection.
func Open(o Options) (*Member, error) {
	m := &Member{
		opts: o, changes: newChangeReceiver(), leadership: newLeadership(), poke: make(chan struct{}, 1),
		clocks: newClocks(o.Log, time.Now),
	}
	var err error
	if m.credentials, err = bundle.Open(o.BundleDir, o.Self); err != nil {
		return nil, err
	}
	if m.joining, err = bundle.ReadJoinConfig(o.BundleDir); err != nil {
		return nil, err
	}
	if m.integrity, err = integrity.Open(o.IntegrityDir, integrity.Options{Logger: o.Log}); err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for _, member := range o.Members {
		addresses[member.Name] = member.Internal
		m.names = append(m.names, member.Name)
	}
	m.network = membership.NewNetwork(m.credentials, addresses)
	m.forwarder = &forwarding.Forwarder{Self: o.Self, Network: m.network, Requests: o.Requests}
	return m, nil
}

// Credentials returns the certificate of this member.
func (m *Member) Credentials() *bundle.Credentials { return m.credentials }

// JoinConfig returns how this member joins the ensemble.
func (m *Member) JoinConfig() bundle.JoinConfig { return m.joining }

// Integrity returns the register of this member's files.
func (m *Member) Integrity() *integrity.Register { return m.integrity }

// Self returns the name of this member.
func (m *Member) Self() string { return m.opts.Self }

// Names returns the names of all members in the order of the configuration. The caller must not
// change the list.
func (m *Member) Names() []string { return m.names }

// own returns the entry of this member and its index in the list.
func (m *Member) own() (own bundle.Member, index int) {
	for i := range m.opts.Members {
		if m.opts.Members[i].Name == m.opts.Self {
			return m.opts.Members[i], i
		}
	}
	return bundle.Member{}, -1
}

// ListenOptions configures the internal port. All fields but Address are required.
type ListenOptions struct {
	Address     string // configured listen address; "" to derive it from that of the member
	IdleTimeout time.Duration
	Limit       membership.ConnectionLimit
	Failed      chan<- error // gets the error when the port fails
}

// Listen opens the internal port and serves the calls that every member answers while it starts:
// changes, status, step-down, rejoining and the state of its logs.
func (m *Member) Listen(ctx context.Context, o ListenOptions) error {
	own, _ := m.own()
	address, err := ListenAddress(ctx, o.Address, own.Internal)
	if err != nil {
		return err
	}
	m.port, err = membership.OpenPort(ctx, membership.PortOptions{
		Address: address, Credentials: m.credentials, Members: m.Names(), IdleTimeout: o.IdleTimeout,
		Limit: o.Limit, Failed: o.Failed, Log: m.opts.Log,
	})
	if err != nil {
		return err
	}
	m.Handle("POST "+changesPath, http.HandlerFunc(m.serveChanges))
	m.Handle("POST "+aboutPath, http.HandlerFunc(m.serveAbout))
	m.Handle("POST "+healthPath, http.HandlerFunc(m.serveHealth))
	m.Handle("POST "+stepDownPath, http.HandlerFunc(m.serveStepDown))
	m.Handle("POST "+logStatePath, http.HandlerFunc(m.serveLogState))
	m.Handle("POST "+suspectPath, http.HandlerFunc(m.serveLogSuspicion))
	m.Handle("POST "+rejoinPath, http.HandlerFunc(m.serveRejoin))
	return nil
}

// Handle mounts a handler on the internal port. Before that, callers get 404 and retry.
func (m *Member) Handle(pattern string, handler http.Handler) { m.port.Handle(pattern, handler) }

// Shutdown waits for running calls of other members, so that they do not fail.
func (m *Member) Shutdown(ctx context.Context) {
	if m.port == nil {
		return
	}
	if err := m.port.Shutdown(ctx); err != nil {
		m.opts.Log.Warn("calls of other members were aborted at the end of the drain time", slog.Any("error", err))
	}
}

// Etcd is the etcd that the members share, for the administration of the ensemble.
type Etcd interface {
	// Leader returns the member that leads etcd; "" if there is none, or etcd is external.
	Leader() string
	// StepDown gives up the leadership of etcd and reports whether this member had it.
	StepDown(ctx context.Context) (led bool, err error)
	// Replace removes a lost member from etcd and adds an empty one in its place.
	Replace(ctx context.Context, name string) error
	// External reports whether the members do not run etcd.
	External() bool
}

// JoinOptions configures the lease. All fields are required.
type JoinOptions struct {
	Client *clientv3.Client
	Prefix string // of the keys in etcd, without a trailing slash
	Etcd   Etcd
	// Record has the addresses for clients and the version. Join sets the other fields.
	Record membership.Record
	// State is what this member has read of the stored resources. It does not catch up before
	// FinishLoading.
	State membership.State
}

// Join acquires this member's lease. Stored resources are read after that, so that this member
// does not miss a change that another member has confirmed.
func (m *Member) Join(ctx context.Context, o JoinOptions) error {
	own, index := m.own()
	o.Record.Name, o.Record.Node, o.Record.Internal = own.Name, index+1, own.Internal
	o.Record.Members = m.names
	opened, err := membership.Open(ctx, membership.Options{
		Etcd: o.Client, Prefix: o.Prefix + "/members", Self: o.Record, Log: m.opts.Log,
		State: &loadedState{state: o.State, loaded: m.changes.loaded}, Prober: prober{m.network, m.clocks},
	})
	if err != nil {
		return err
	}
	m.etcd = o.Etcd
	m.leave = sync.OnceFunc(func() {
		m.StopConfirming()
		opened.Close()
	})
	m.membership.Store(opened)
	return nil
}

// Alive reports whether this member has its lease, so that it may serve clients.
func (m *Member) Alive() bool {
	joined := m.membership.Load()
	return joined != nil && joined.Alive()
}

// Session returns the etcd session of this member's lease, or nil without a lease. It is called
// after Join.
func (m *Member) Session() *concurrency.Session { return m.membership.Load().Session() }

// Live returns the members with valid leases. It is called after Join.
func (m *Member) Live() []membership.Record { return m.membership.Load().Live() }

// SetReady publishes to the other members whether this one serves clients.
func (m *Member) SetReady(ctx context.Context, ready bool) {
	if err := m.membership.Load().SetReady(ctx, ready); err != nil {
		m.opts.Log.Warn("readiness could not be published to the other members", slog.Any("error", err))
	}
}

// MarkStarted records that the first start of the ensemble is done, for AwaitStarted.
func (m *Member) MarkStarted(ctx context.Context) error { return m.membership.Load().MarkStarted(ctx) }

// AwaitStarted waits until a member has done the first start of the ensemble.
func (m *Member) AwaitStarted(ctx context.Context) error {
	return m.membership.Load().AwaitStarted(ctx)
}

// Retire prevents this member, which is stopping, from acquiring another lease.
func (m *Member) Retire() {
	if joined := m.membership.Load(); joined != nil {
		joined.Retire()
	}
}

// Leave releases this member's lease. It is called when no running call needs the lease any
// more. Otherwise the other members would have to wait for its expiry.
func (m *Member) Leave() {
	if m.leave != nil {
		m.leave()
	}
}

// StopTime returns the time that a stopping member needs in addition to a single server, to hand
// its shards over.
func (m *Member) StopTime() time.Duration { return HandOverTimeout }

// Close releases the lease, and closes the internal port and the connections to other members.
func (m *Member) Close() error {
	m.Leave()
	defer m.network.Close()
	if m.port == nil {
		return nil
	}
	return m.port.Close()
}

// Sender returns the Sender to the owner of a topic or the coordinator of a group, or nil if this
// member serves the request.
func (m *Member) Sender(owner engine.Owner) forwarding.Sender { return m.forwarder.Sender(owner) }

// Call returns the HTTP client and the URL for calls to a member.
func (m *Member) Call(name string) (via *http.Client, url string, err error) {
	client, ok := m.network.Client(name)
	if !ok {
		return nil, "", fmt.Errorf("member %q is not in members.list", name)
	}
	return client, m.network.URL(name, ""), nil
}

// Post sends a member a JSON request and decodes the response into out.
func (m *Member) Post(ctx context.Context, member, path string, in, out any) error {
	return m.network.Post(ctx, member, path, in, out)
}

// unknownMember returns the error for a name that is not in the list of members.
func unknownMember(name string) error {
	return errs.Newf(errs.NotFound, "member %q is not in members.list", name)
}
