package replicated

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Options say what a shard is and where. All without a default are required.
type Options struct {
	Cluster string // uid of the cluster
	Number  int    // of the shard in the cluster
	Dir     string // of its store

	JetStream jetstream.JetStream
	Replicas  int // of the log

	Etcd *clientv3.Client
	// Session returns the member's lease, nil while there is none. It is asked
	// again when that lease is over.
	Session func() *concurrency.Session
	// Live says by the steady clock whether that lease surely still holds.
	Live func() bool
	// Prefix is what the keys in etcd begin with, such as /freshet/shards/.
	Prefix string

	Member string
	// Members returns those that have a live lease, in an order that all of them
	// agree on.
	Members func() []string
	// All are the members of the group, in an order that all of them agree on, and
	// Copies is how many of them have a copy of the shard (SetCopies). Without All
	// every member has one.
	All    []string
	Copies int

	// Peer returns how another member's checkpoint handler is reached (Handler,
	// mounted at base); nil when a new copy can begin from the log only.
	Peer func(member string) (via http.RoundTripper, base string, err error)

	Store pebble.Options

	// OnOwner is called with the engine when this member has become the owner, and
	// OnLost when it is no longer. They must be quick.
	OnOwner func(engine.Engine)
	OnLost  func()

	// LogBytes is where produce is refused; 0 means 4 GiB.
	LogBytes int64
	// GoneAfter is when the log is no longer kept for a member that is not live, and
	// another member gets its copy; 0 means 10 minutes.
	GoneAfter time.Duration
	// FlushEvery is how often a store is flushed at least; 0 means a minute.
	FlushEvery time.Duration
	// FetchBytes is how many bytes a second a checkpoint is fetched with; 0 means
	// 64 MiB.
	FetchBytes int64
	// Settle is how long the preferred owner has to be there before it is handed the
	// shard; 0 means 5 seconds.
	Settle time.Duration

	// Logger names the cluster; the shard adds its number.
	Logger *slog.Logger
}

// Role is what a member is to a shard.
type Role string

// The roles.
const (
	Starting  Role = "Starting" // its store does not follow the log yet
	Standby   Role = "Standby"
	Leading   Role = "Owner"
	Elsewhere Role = "Elsewhere" // this member has no copy
)

// Status says how a shard is doing, as this member sees it.
type Status struct {
	Role     Role
	Owner    engine.Owner
	Applied  uint64 // sequence of the log up to which this member's store has it
	End      uint64 // last sequence of the log that this member has heard of
	LogBytes int64
	Full     bool   // produce is refused
	Behind   string // the member whose copy the log is kept for most, "" when it is this one's
	Copies   []Copy
	Err      error // why the store cannot follow the log, such as engine.ErrLogLost
}

// Copy is a member's copy of a shard.
type Copy struct {
	Member  string
	Live    bool
	Applied uint64 // as it last said
	Flushed uint64
	Lag     uint64 // messages of the log that it had not applied then
	Lost    bool   // its store and the log do not belong together: engine.ErrLogLost
	Problem string // why it cannot be used, "" when it can
}

func (o Options) withDefaults() Options {
	if o.LogBytes == 0 {
		o.LogBytes = 4 << 30
	}
	if o.GoneAfter == 0 {
		o.GoneAfter = 10 * time.Minute
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = time.Minute
	}
	if o.FetchBytes == 0 {
		o.FetchBytes = 64 << 20
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Store.Logger = o.Logger.With("shard", o.Number)
	return o
}
