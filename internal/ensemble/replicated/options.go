package replicated

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/ensemble/integrity"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// Lease is the member's lease in its ensemble.
type Lease interface {
	// Session returns the session of the lease, or nil while there is none. It is called
	// again when that session has ended.
	Session() *concurrency.Session
	// Alive reports whether the lease is certainly valid, by the monotonic clock.
	Alive() bool
}

// Members are the members of the ensemble.
type Members interface {
	// Live returns the members with a valid lease, in an order that is the same on all
	// members.
	Live() []string
}

// Peers has the connections to the other members.
type Peers interface {
	// Call returns the HTTP client for a member and the URL of its internal listener, which
	// serves Handler under Path.
	Call(member string) (via *http.Client, url string, err error)
}

// Ownership is notified when this member's ownership of a shard changes. Both methods must
// return quickly.
type Ownership interface {
	// Acquired is called with the engine when this member has become the owner.
	Acquired(owned engine.Engine)
	// Lost is called when this member is no longer the owner, before the engine is closed.
	Lost()
}

// Options configures a shard. Fields without a default are required.
type Options struct {
	Cluster string // uid of the cluster
	Number  int    // number of the shard in the cluster
	Dir     string // directory of its store

	JetStream jetstream.JetStream
	Replicas  int // of the log

	Etcd  *clientv3.Client
	Lease Lease
	// Prefix is the prefix of the keys in etcd, such as /freshet/shards/.
	Prefix string

	Member  string
	Members Members
	// All are the members of the ensemble, in an order that is the same on all members.
	// Copies is the number of members that have a copy of the shard (SetCopies). Without All
	// every member has one.
	All    []string
	Copies int

	// Peers is for checkpoints of other members' copies. When it is nil, a new copy can start
	// from the log only.
	Peers Peers

	Store pebble.Options

	Ownership Ownership // nil when nobody has to be notified

	// Integrity records damage of the copy's files; nil records nothing.
	Integrity *integrity.Register

	// Suspect is called with a server of the log whose replica has a record that does not verify, or lacks one,
	// while another replica has it. It must return quickly. nil suspects no server.
	Suspect func(server, reason string)

	// Metrics counts the appends to the log that needed questions; nil counts nothing.
	Metrics *Metrics
	// Unacknowledged is shared by all shards of the member; nil means that there is no other shard.
	Unacknowledged *Unacknowledged

	// Turns is shared by all shards of the member; nil means that there is no other shard.
	Turns *Turns

	// LogBytes is the size of the log at which produce requests are rejected; 0 means 4 GiB.
	LogBytes int64
	// GoneAfter is how long a member may be absent before the log is no longer kept for it
	// and another member gets its copy; 0 means 10 minutes.
	GoneAfter time.Duration
	// FlushInterval is the longest interval between two flushes of a store; 0 means a minute.
	FlushInterval time.Duration
	// FetchBytes limits the rate at which a checkpoint is fetched, in bytes per second; 0
	// means 64 MiB.
	FetchBytes int64
	// VerifyInterval is the interval at which all tables of the copy are verified, and the copies are compared;
	// 0 means a week.
	VerifyInterval time.Duration
	// VerifyBytes limits the rate at which a copy is verified after anything but a clean stop, in bytes per
	// second; 0 means 256 MiB. The periodic verification uses a sixteenth of it, and the comparison too.
	VerifyBytes int64
	// Settle is how long the preferred owner must have been live before it gets the shard;
	// 0 means 5 seconds.
	Settle time.Duration

	// Logger has the cluster as an attribute; the shard adds its number.
	Logger *slog.Logger

	suspicions *suspicions // of the shard's log; set by withDefaults
}

// Role is a member's role in a shard.
type Role string

// The roles.
const (
	Starting  Role = "Starting" // the store does not follow the log yet
	Standby   Role = "Standby"
	Leading   Role = "Owner"
	Elsewhere Role = "Elsewhere" // this member has no copy
)

// Status describes a shard as this member sees it.
type Status struct {
	Role          Role
	Owner         engine.Owner
	Applied       uint64 // sequence of the log up to which this member has applied it
	End           uint64 // last sequence of the log that this member knows
	Full          bool   // produce requests are rejected
	SlowestMember string // the member that holds up purging the log most, "" when it is this one
	Copies        []Copy
	Err           error // why the store cannot follow the log, such as engine.ErrLogLost
}

// Copy is a member's copy of a shard.
type Copy struct {
	Member  string
	Live    bool
	Applied uint64 // as last reported
	Flushed uint64
	Lag     uint64 // messages of the log that it had not applied then
	Lost    bool   // its store and the log do not match: engine.ErrLogLost
	Problem string // why it is unusable, "" when it is usable
}

func (o Options) withDefaults() Options {
	if o.LogBytes == 0 {
		o.LogBytes = 4 << 30
	}
	if o.GoneAfter == 0 {
		o.GoneAfter = 10 * time.Minute
	}
	if o.FlushInterval == 0 {
		o.FlushInterval = time.Minute
	}
	if o.FetchBytes == 0 {
		o.FetchBytes = 64 << 20
	}
	if o.VerifyInterval == 0 {
		o.VerifyInterval = 7 * 24 * time.Hour
	}
	if o.VerifyBytes == 0 {
		o.VerifyBytes = 256 << 20
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	if o.Turns == nil {
		o.Turns = new(Turns)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Store.Logger = o.Logger.With(slog.Int("shard", o.Number))
	o.suspicions = newSuspicions(&o)
	return o
}
