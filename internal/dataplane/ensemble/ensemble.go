// Package ensemble connects the data plane of a member to its ensemble: it locates the log, the
// journals and the owners of a cluster's shards (Ensemble, which implements dataplane.Ensemble),
// decides from etcd which clusters run (Plane), and finds the members that serve a topic or a
// consumer group (Router). SinglePlane is the plane of a server that runs alone.
//
// It combines packages replicated, journal and remote with etcd for package dataplane. Keys
// in etcd, under Options.Prefix:
//
//	clusters/<uid>              the spec of a cluster that should run, written by the elected member
//	gone/<uid>/<member>         the cluster was deleted while the member was down
//	shards/<uid>/count          the number of shards of the cluster, which never changes
//	shards/<uid>/journals       the member that imports the cluster's journals (seed.go)
//	shards/<uid>/<n>/…          the keys of package replicated
//	shards/<uid>/journal/…      the keys of package journal
//
// # Locks
//
//	Ensemble.mu  the shards and journals that are open on this member. Never held over a call.
//
// It is a leaf lock.
package ensemble

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/errs"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/remote"
	"freshet/internal/ensemble/replicated"
)

// Membership is this server's membership in its ensemble, as ensemble.Member is.
type Membership interface {
	// Session returns the etcd session of this member's lease, or nil without a lease.
	Session() *concurrency.Session
	// Alive reports whether this member has its lease.
	Alive() bool
	// Live returns the members with valid leases, in any order.
	Live() []membership.Record
	// Call returns the HTTP client for a member and the URL of its internal listener.
	Call(member string) (via *http.Client, url string, err error)
	// LogSynced reports whether external NATS servers sync every write. external is false
	// when the members run the servers.
	LogSynced() (external, synced, known bool, reason, message string)
	// SuspectLog makes the NATS server of a member verify its files, because a record that it returned does
	// not verify.
	SuspectLog(member, reason string)
	// Observation returns the latest state of the streams and files of all members; nil before the
	// first.
	Observation() *ensemble.Observation
}

// Options configures a member. All fields are required.
type Options struct {
	Self       string
	Members    []string // all of them, in the order of the configuration
	Membership Membership
	Etcd       *clientv3.Client
	Prefix     string // of the keys, without a trailing slash
	Log        *nats.Conn
	// Clusters is the directory that contains the clusters' directories, by UID.
	Clusters string
	Logger   *slog.Logger
	// Integrity records damage of this member's files; nil records nothing.
	Integrity *integrity.Register
}

// Paths on the internal listener.
const (
	CheckpointsPath = replicated.Path
	JournalsPath    = journal.Path
	ReleasePath     = "/clusters/release"
)

// Ensemble implements dataplane.Ensemble with etcd and NATS.
type Ensemble struct {
	opts      Options
	members   *liveMembers
	jetStream natsjs.JetStream
	appends   *replicated.Metrics
	unacked   replicated.Unacknowledged
	turns     replicated.Turns

	mu         sync.Mutex
	openShards map[shardKey]*replicated.Shard // protected by mu
	// openJournals are the journals of the open clusters, by UID; protected by mu
	openJournals map[string]*journal.Journals
}

type shardKey struct {
	cluster string
	number  int
}

var _ dataplane.Ensemble = (*Ensemble)(nil)

// New creates a member's view of its ensemble.
func New(opts Options) (*Ensemble, error) {
	stream, err := natsjs.New(opts.Log)
	if err != nil {
		return nil, fmt.Errorf("creating a JetStream client for the replicated log: %w", err)
	}
	return &Ensemble{
		opts: opts, members: &liveMembers{opts.Membership, opts.Members}, jetStream: stream,
		openShards: map[shardKey]*replicated.Shard{}, openJournals: map[string]*journal.Journals{},
		appends: replicated.NewMetrics(),
	}, nil
}

// Self implements dataplane.Ensemble.
func (g *Ensemble) Self() string { return g.opts.Self }

// Members implements dataplane.Ensemble.
func (g *Ensemble) Members() int { return len(g.opts.Members) }

// Remote implements dataplane.Ensemble.
func (g *Ensemble) Remote() *remote.Client { return &remote.Client{Peers: g.opts.Membership} }

func (g *Ensemble) key(name string) string { return g.opts.Prefix + "/" + name }

// liveMembers are the live members in the order of the configuration, which is the same on all
// members.
type liveMembers struct {
	membership Membership
	all        []string
}

// Live implements replicated.Members.
func (m *liveMembers) Live() []string {
	is := map[string]bool{}
	for _, record := range m.membership.Live() {
		is[record.Name] = true
	}
	var live []string
	for _, name := range m.all {
		if is[name] {
			live = append(live, name)
		}
	}
	return live
}

// Shards implements dataplane.Ensemble.
func (g *Ensemble) Shards(ctx context.Context, uid string, wanted int) (int, error) {
	key := g.key("shards/" + uid + "/count")
	response, err := g.opts.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, strconv.Itoa(wanted))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return 0, fmt.Errorf("reading the number of shards from etcd: %w", err)
	}
	if response.Succeeded {
		return wanted, nil
	}
	text := string(response.Responses[0].GetResponseRange().Kvs[0].Value)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errs.Newf(errs.Internal, "number of shards of cluster %s in etcd is invalid: %q", uid, text)
	}
	return n, nil
}

// OpenShard implements dataplane.Ensemble.
func (g *Ensemble) OpenShard(ctx context.Context, o dataplane.ShardOptions) (dataplane.EnsembleShard, error) {
	opts := g.shardOptions(o.Cluster, o.Number)
	opts.All, opts.Copies = g.opts.Members, copiesOrDefault(o.Copies)
	if o.Store.Logger != nil {
		opts.Logger = o.Store.Logger // has the readable name of the cluster
	}
	opts.Dir, opts.Store, opts.Ownership = o.Dir, o.Store, o.Ownership
	opened, err := replicated.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	key := shardKey{o.Cluster, o.Number}
	g.mu.Lock()
	g.openShards[key] = opened
	g.mu.Unlock()
	return &shard{Shard: opened, number: o.Number, closed: func() {
		g.mu.Lock()
		delete(g.openShards, key)
		g.mu.Unlock()
	}}, nil
}

// defaultCopies is the number of members with a copy of a shard when the cluster does not
// specify it (docs/spec/ensemble.md#shards).
const defaultCopies = 3

func copiesOrDefault(copies int) int {
	if copies == 0 {
		return defaultCopies
	}
	return copies
}

// shardOptions returns the options that all shards of this member have in common.
func (g *Ensemble) shardOptions(cluster string, number int) replicated.Options {
	return replicated.Options{
		Cluster: cluster, Number: number, JetStream: g.jetStream, Replicas: len(g.opts.Members),
		Etcd: g.opts.Etcd, Lease: g.opts.Membership, Prefix: g.key("shards/"),
		Member: g.opts.Self, Members: g.members, Peers: g.opts.Membership, Logger: g.opts.Logger,
		Integrity: g.opts.Integrity, Metrics: g.appends, Unacknowledged: &g.unacked,
		Turns:   &g.turns,
		Suspect: g.suspectLog,
	}
}

// Appends returns the counters of appends to the logs of this member's shards.
func (g *Ensemble) Appends() prometheus.Collector { return g.appends }

// CheckpointHandler serves checkpoints of this member's copies to members that start a copy, under
// CheckpointsPath.
func (g *Ensemble) CheckpointHandler() http.Handler {
	return replicated.Handler(func(cluster string, number int) *replicated.Shard {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.openShards[shardKey{cluster, number}]
	})
}

// Journals implements dataplane.Ensemble.
func (g *Ensemble) Journals(ctx context.Context, uid string) (dataplane.Journals, error) {
	opened, err := g.openCopiedJournals(ctx, uid)
	if err != nil {
		return nil, err
	}
	if err := g.importJournals(ctx, uid, opened.Journals); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// Destroy removes the data that the members share of a cluster that no member has open.
func (g *Ensemble) Destroy(ctx context.Context, uid string) error {
	found, err := g.opts.Etcd.Get(ctx, g.key("shards/"+uid+"/count"))
	if err != nil {
		return fmt.Errorf("reading the number of shards from etcd: %w", err)
	}
	if len(found.Kvs) == 0 {
		return nil // the cluster never existed, or is already removed
	}
	n, err := strconv.Atoi(string(found.Kvs[0].Value))
	if err != nil {
		return fmt.Errorf("parsing the number of shards in etcd: %w", err)
	}
	for i := range n {
		if err := replicated.Destroy(ctx, g.shardOptions(uid, i)); err != nil {
			return fmt.Errorf("removing the log of shard %d: %w", i, err)
		}
	}
	journals, err := journal.Open(ctx, g.opts.Log, journal.Options{Prefix: uid, Replicas: len(g.opts.Members)})
	if err != nil {
		return err
	}
	defer journals.Close()
	if err := journals.Destroy(ctx); err != nil {
		return fmt.Errorf("removing the journals: %w", err)
	}
	// Last, because a retry finds the remaining data by the number of shards.
	if _, err := g.opts.Etcd.Delete(ctx, g.key("shards/"+uid+"/"), clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("removing the keys of the shards from etcd: %w", err)
	}
	return nil
}
