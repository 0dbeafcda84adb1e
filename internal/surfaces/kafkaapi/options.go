package kafkaapi

import (
	"log/slog"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

// Surface is what audit records call this surface.
const Surface = "stream"

// Cluster is a cluster as this surface needs to know it.
type Cluster struct {
	Organization string
	Name         string
	UID          string
	Location     string // shown as the rack of its broker
	Scope        access.Scope
	Audiences    []string
	Broker       *messaging.Broker
	Groups       *groups.Coordinator
	Quota        *quota.Cluster // nil: no limits
	Members      Members        // nil: the server is alone
	// Disk returns the bytes of the disk that the cluster is on, and those of them that
	// are free; nil: they are not told.
	Disk func() (total, free int64, err error)
	// Serves says whether the cluster still has the protocol; nil: always.
	Serves func() bool
}

// Clusters finds clusters; its errors say in one sentence why there is none.
type Clusters interface {
	// AtHost returns the cluster of a name that a client sent with TLS.
	AtHost(name string) (*Cluster, error)
	// Named returns the cluster with a name in an organization.
	Named(organization, name string) (*Cluster, error)
	// Default returns the cluster of clients that name none.
	Default() (*Cluster, error)
}

// Limits bound what clients can hold.
type Limits struct {
	Frame       int           // bytes of one request
	Memory      int64         // bytes of requests and answers of all connections
	Connections int           // of a listener
	WriteStall  time.Duration // without progress of a slow reader
}

// Options configure a server. Authenticator, Authorizer and Clusters are
// required.
type Options struct {
	pipeline.Options
	// Filter says which of the things in a scope a principal has a permission on.
	// access.Policy has one.
	Filter func(who *identity.Principal, permission access.Permission, scope access.Scope) access.Filter
	// Revision moves when decisions of Authorizer and Filter may have changed. nil:
	// none are remembered. access.Policy has one.
	Revision func() uint64
	// Rules lists what role bindings grant beneath a scope, at most so many; nil: they
	// are not shown. access.Policy has one.
	Rules    func(scope access.Scope, limit int) (rules []access.SubjectRule, complete bool)
	Clusters Clusters
	Limits   Limits
	// ListAll shows topics of other namespaces to clients that ask for all.
	ListAll bool
	Logger  *slog.Logger // nil discards
}

// Fixed bounds (docs/spec/stream.md#limits).
const (
	frameBeforeAuth      = 512 << 10
	pendingAnswers       = 64
	connectionsByAddress = 1000
	strangersByAddress   = connectionsByAddress / 2
	leastStrangers       = 16
	strangersShare       = 5 // of the connections of a listener, at most
	idleTimeout          = 10 * time.Minute
	authTimeout          = 10 * time.Second
	failureDelay         = 100 * time.Millisecond
	smallFrame           = 64 << 10
	answersAtOnce        = 8
	smallBeforeAuth      = 4 << 10
	bufferBeforeAuth     = 1 << 10
	buffer               = 4 << 10  // what is larger is read without one
	memoryBeforeAuth     = 16 << 20 // of all clients together
	slowestClient        = 64 << 10 // bytes a second of a large request or answer
)

// strangers is how many connections may wait to be authenticated, of all listeners.
// They are far fewer than those that have; memoryBeforeAuth bounds what they send.
func (l *Limits) strangers() int { return max(leastStrangers, l.Connections/strangersShare) }

func (o *Options) complete() {
	o.Complete("streamapi")
	if o.Clusters == nil || o.Filter == nil {
		panic("streamapi: Clusters and Filter are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Limits.Frame == 0 {
		o.Limits.Frame = 100 << 20
	}
	if o.Limits.Memory == 0 {
		o.Limits.Memory = 256 << 20
	}
	if o.Limits.Connections == 0 {
		o.Limits.Connections = 10_000
	}
	if o.Limits.WriteStall == 0 {
		o.Limits.WriteStall = 30 * time.Second
	}
}
