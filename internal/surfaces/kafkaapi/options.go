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

// Surface is the name of this surface in audit records.
const Surface = "stream"

// Cluster is a cluster as this surface uses it.
type Cluster struct {
	Organization string
	Name         string
	UID          string
	Location     string // reported as the rack of the broker
	Scope        access.Scope
	Audiences    []string
	Topics       Topics
	Appends      Appends
	Namespaces   Namespaces
	Grants       access.ClusterPermissions
	Groups       *groups.Coordinator
	Shares       *messaging.Shares
	Quota        *quota.Cluster // nil means no limits
	Members      Members
}

// Clusters finds clusters. Its errors are one sentence that clients may see.
type Clusters interface {
	// AtHost returns the cluster for the host name of a TLS handshake (SNI).
	AtHost(name string) (*Cluster, error)
	// Named returns a cluster by organization and name.
	Named(organization, name string) (*Cluster, error)
	// Default returns the cluster for clients that name none.
	Default() (*Cluster, error)
	// Serves reports whether a cluster still serves the Kafka protocol on this server.
	Serves(cluster *Cluster) bool
}

// Disk is the disk of all clusters of this server.
type Disk interface {
	Space() (total, free int64, err error)
}

// Limits bounds the resources that clients can use.
type Limits struct {
	MaxFrame     int           // bytes of one request
	Memory       int64         // bytes of requests and responses of all connections
	Connections  int           // per listener
	StallTimeout time.Duration // timeout of a transfer without progress
}

// MaxStallTimeout is the longest timeout of a transfer without progress.
const MaxStallTimeout = 30 * time.Second

// Policy reports the permissions of principals beyond single decisions. access.Policy implements it.
type Policy interface {
	// Filter returns the part of a scope on which a principal has a permission.
	Filter(principal *identity.Principal, permission access.Permission, scope access.Scope) access.Filter
	// Revision changes when decisions of the authorizer and of Filter may change.
	Revision() uint64
	// RulesWithin returns up to limit rules that role bindings grant within a scope.
	RulesWithin(scope access.Scope, limit int) (rules []access.SubjectRule, complete bool)
}

// Options configures a server. Authenticator, Authorizer, Clusters and Policy are required.
type Options struct {
	pipeline.Options
	Policy   Policy
	Clusters Clusters
	Limits   Limits
	Disk     Disk // nil means that its space is not reported
	// ListAll includes the topics of other namespaces in lists of all topics.
	ListAll bool
	Logger  *slog.Logger // nil discards logs
}

// Fixed limits (docs/spec/stream.md#limits).
const (
	maxFrameBeforeAuth          = 512 << 10
	maxPendingResponses         = 64
	maxConnectionsByAddress     = 1000
	maxUnauthenticatedByAddress = maxConnectionsByAddress / 2
	minUnauthenticatedLimit     = 16
	unauthenticatedDivisor      = 5 // divisor of Limits.Connections
	idleTimeout                 = 10 * time.Minute
	authTimeout                 = 10 * time.Second
	authFailureDelay            = 100 * time.Millisecond
	smallFrame                  = 64 << 10
	maxConcurrentDescribes      = 8
	smallFrameBeforeAuth        = 4 << 10
	readBufferSizeBeforeAuth    = 1 << 10
	readBufferSize              = 4 << 10  // larger reads bypass the buffer
	memoryBeforeAuth            = 16 << 20 // of all clients together, bytes
	minTransferRate             = 64 << 10 // minimum bytes per second of a large request or response
)

// maxUnauthenticated returns the limit of connections that have not authenticated, over all listeners. It is
// far below the limit of connections; memoryBeforeAuth bounds their memory.
func (l *Limits) maxUnauthenticated() int {
	return max(minUnauthenticatedLimit, l.Connections/unauthenticatedDivisor)
}

func (o *Options) complete() {
	o.Complete("kafkaapi")
	if o.Clusters == nil || o.Policy == nil {
		panic("kafkaapi: Clusters and Policy are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Limits.MaxFrame == 0 {
		o.Limits.MaxFrame = 100 << 20
	}
	if o.Limits.Memory == 0 {
		o.Limits.Memory = 256 << 20
	}
	if o.Limits.Connections == 0 {
		o.Limits.Connections = 10_000
	}
	if o.Limits.StallTimeout == 0 {
		o.Limits.StallTimeout = MaxStallTimeout
	}
}
