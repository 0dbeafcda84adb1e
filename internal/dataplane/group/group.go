// Package group is what the data plane of a member of a group needs of the others:
// where the log, the journals and the owners of a cluster's shards are
// (dataplane.Group), and which clusters should run (Specs).
//
// It puts engine/replicated, engine/jetstream and etcd together for dataplane and
// decides nothing itself. Keys in etcd, beneath Options.Prefix:
//
//	clusters/<uid>              what should run, as its elected member says
//	gone/<uid>/<member>         that a cluster was deleted while a member was down
//	shards/<uid>/count          how many shards the cluster has, for ever
//	shards/<uid>/journals       which member brings in its journals (seed.go)
//	shards/<uid>/<n>/…          of package replicated
package group

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/errs"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/remote"
	"freshet/internal/ensemble/replicated"
)

// Options say what a member has. All but Synced are required.
type Options struct {
	Self    string
	Members []string // all of them, in the order of the configuration
	// Live are the members whose leases are good, in any order.
	Live    func() []string
	Etcd    *clientv3.Client
	Session func() *concurrency.Session
	Alive   func() bool
	Prefix  string // of the keys, without a slash at its end
	Log     *nats.Conn
	// Clusters is the folder of all clusters' folders, by UID.
	Clusters string
	// Call returns what calls a member, and the URL of its internal listener.
	Call func(member string) (*http.Client, string, error)
	// Synced says whether the log syncs every write: a reason and a message when it
	// does not, or nobody knows (known is false). nil when the members see to it.
	Synced func() (synced, known bool, reason, message string)
	Logger *slog.Logger
}

// Paths on the internal listener.
const (
	CheckpointsPath = "/checkpoints"
	ReleasePath     = "/clusters/release"
)

// Group is the other members as a plane needs them.
type Group struct {
	opts   Options
	stream natsjs.JetStream

	mu   sync.Mutex
	open map[shardKey]*replicated.Shard // guarded by mu
}

type shardKey struct {
	cluster string
	number  int
}

var _ dataplane.Group = (*Group)(nil)

// New makes a member's view of its group.
func New(opts Options) (*Group, error) {
	stream, err := natsjs.New(opts.Log)
	if err != nil {
		return nil, fmt.Errorf("reaching the log of messages: %w", err)
	}
	return &Group{opts: opts, stream: stream, open: map[shardKey]*replicated.Shard{}}, nil
}

// Self implements dataplane.Group.
func (g *Group) Self() string { return g.opts.Self }

// Members implements dataplane.Group.
func (g *Group) Members() int { return len(g.opts.Members) }

// Remote implements dataplane.Group.
func (g *Group) Remote() *remote.Client { return &remote.Client{Member: g.opts.Call} }

func (g *Group) key(name string) string { return g.opts.Prefix + "/" + name }

// live lists the live members in the order of the configuration.
func (g *Group) live() []string {
	is := map[string]bool{}
	for _, name := range g.opts.Live() {
		is[name] = true
	}
	var live []string
	for _, name := range g.opts.Members {
		if is[name] {
			live = append(live, name)
		}
	}
	return live
}

// Shards implements dataplane.Group.
func (g *Group) Shards(ctx context.Context, uid string, wanted int) (int, error) {
	key := g.key("shards/" + uid + "/count")
	answer, err := g.opts.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, strconv.Itoa(wanted))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return 0, fmt.Errorf("asking etcd: %w", err)
	}
	if answer.Succeeded {
		return wanted, nil
	}
	text := string(answer.Responses[0].GetResponseRange().Kvs[0].Value)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errs.Newf(errs.Internal, "the number of shards of cluster %s in etcd is %q", uid, text)
	}
	return n, nil
}

// OpenShard implements dataplane.Group.
func (g *Group) OpenShard(ctx context.Context, o dataplane.ShardOptions) (dataplane.GroupShard, error) {
	opts := g.shard(o.Cluster, o.Number)
	opts.All, opts.Copies = g.opts.Members, copiesOf(o.Copies)
	if o.Store.Logger != nil {
		opts.Logger = o.Store.Logger // which names the cluster as people do
	}
	opts.Dir, opts.Store, opts.OnOwner, opts.OnLost = o.Dir, o.Store, o.OnOwner, o.OnLost
	opened, err := replicated.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	key := shardKey{o.Cluster, o.Number}
	g.mu.Lock()
	g.open[key] = opened
	g.mu.Unlock()
	return &shard{Shard: opened, number: o.Number, closed: func() {
		g.mu.Lock()
		delete(g.open, key)
		g.mu.Unlock()
	}}, nil
}

// defaultCopies is how many members have a copy of a shard when the cluster does not
// say (docs/spec/group.md#shards).
const defaultCopies = 3

func copiesOf(asked int) int {
	if asked == 0 {
		return defaultCopies
	}
	return asked
}

// shard are the options that all of a member's shards share.
func (g *Group) shard(cluster string, number int) replicated.Options {
	return replicated.Options{
		Cluster: cluster, Number: number, JetStream: g.stream, Replicas: len(g.opts.Members),
		Etcd: g.opts.Etcd, Session: g.opts.Session, Live: g.opts.Alive, Prefix: g.key("shards/"),
		Member: g.opts.Self, Members: g.live, Peer: g.peer, Logger: g.opts.Logger,
	}
}

func (g *Group) peer(member string) (via http.RoundTripper, base string, err error) {
	client, url, err := g.opts.Call(member)
	if err != nil {
		return nil, "", err
	}
	return client.Transport, url + CheckpointsPath, nil
}

// Checkpoints serves this member's copies to others that begin one, beneath
// CheckpointsPath.
func (g *Group) Checkpoints() http.Handler {
	return http.StripPrefix(CheckpointsPath, replicated.Handler(func(cluster string, number int) *replicated.Shard {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.open[shardKey{cluster, number}]
	}))
}

// Journals implements dataplane.Group.
func (g *Group) Journals(ctx context.Context, uid string) (dataplane.Journals, error) {
	opened, err := journal.Open(ctx, g.opts.Log, journal.Options{Prefix: uid, Replicas: len(g.opts.Members)})
	if err != nil {
		return nil, err
	}
	if err := g.bringIn(ctx, uid, opened); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// Destroy implements dataplane.Group: it removes what the members share of a cluster
// that none of them has open.
func (g *Group) Destroy(ctx context.Context, uid string) error {
	found, err := g.opts.Etcd.Get(ctx, g.key("shards/"+uid+"/count"))
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	if len(found.Kvs) == 0 {
		return nil // it never was, or is gone
	}
	n, err := strconv.Atoi(string(found.Kvs[0].Value))
	if err != nil {
		return fmt.Errorf("the number of shards in etcd: %w", err)
	}
	for i := range n {
		if err := replicated.Destroy(ctx, g.shard(uid, i)); err != nil {
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
	// Last: while the number is there, what is left is found.
	if _, err := g.opts.Etcd.Delete(ctx, g.key("shards/"+uid+"/"), clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("removing what etcd knows of the shards: %w", err)
	}
	return nil
}
