package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble"
	"freshet/internal/identity"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/internal/surfaces/refusal"
)

// One server or several is a constructor (newTopology). The rest of the package calls these
// interfaces and does not ask whether there are other servers.

// servers is this server's part in its ensemble: ensemble.Member, or ensemble.Single for a server
// that runs alone or has not read its certificate yet.
type servers interface {
	lease
	confirmer
	leader
	members
}

// lease is the right to serve clients.
type lease interface {
	Alive() bool
	SetReady(ctx context.Context, ready bool)
	Retire()
	Leave()
	// Shutdown waits for running calls of other members.
	Shutdown(ctx context.Context)
	// Now returns the time that the servers agree on.
	Now() time.Time
	// StopTime returns the time that stopping takes in addition to the drain time.
	StopTime() time.Duration
}

// confirmer applies changes on all servers.
type confirmer interface {
	// Confirm returns when every other server has applied a change.
	Confirm(change any)
	StopConfirming()
}

// leader runs work on one of the servers.
type leader interface {
	Lead(ctx context.Context, work func(context.Context) error) error
	StopLeading(ctx context.Context) <-chan struct{}
}

var (
	_ servers = ensemble.Single{}
	_ servers = (*ensemble.Member)(nil)
)

// topology joins the servers with each other (memberPhases), with the resource API
// (controlTopology) and with the clusters (dataTopology). single and member implement it.
type topology interface {
	memberPhases
	controlTopology
	dataTopology
}

// memberPhases are the phases of the start that connect a member to the others. They do nothing on
// a single server, which only starts its own etcd.
type memberPhases interface {
	openCredentials(ctx context.Context) error
	openPort(ctx context.Context) error
	// startEtcd starts the embedded etcd.
	startEtcd(ctx context.Context, opts etcd.Options) (*etcd.Member, error)
	openLog(ctx context.Context) error
	join(ctx context.Context) error
}

// controlTopology is the part of topology that runs the resource API.
type controlTopology interface {
	// replicas returns the servers that must apply every stored change; nil for none.
	replicas() kinds.Replicas
	// recorder returns where this server's own controllers record events; nil for nowhere.
	recorder() reconcile.Recorder
	// startLoading is called before stored resources are read, finishLoading when all are
	// loaded.
	startLoading()
	finishLoading(ctx context.Context) error
	// runControllers runs the controllers until the context is canceled.
	runControllers(ctx context.Context)
	// firstStart does the first start if needed, and waits until this server has opened its
	// clusters.
	firstStart(ctx context.Context) error
	// runBackups takes the scheduled backups that do not depend on leader election.
	runBackups(ctx context.Context)
}

// dataTopology is the part of topology that runs the clusters.
type dataTopology interface {
	// openPlane opens the data plane.
	openPlane(opts dataplane.Options) (*dataplane.Plane, clusterPlane, error)
	// routes and nodes return the servers of a cluster for HTTP and for Kafka clients.
	routes(c *dataplane.Cluster) brokerhttp.Members
	nodes(c *dataplane.Cluster) kafkaapi.Members
	// refuseEarly handles connections to a Kafka port until the returned function is called.
	refuseEarly(port *net.TCPListener) (end func())
	// checks returns the checks of /readyz that depend on the topology.
	checks() []apiserver.Check
	// degraded returns what is not as it should be while the server is ready, without names of
	// members and files, because /readyz is public.
	degraded() []string
}

// clusterPlane runs clusters for the MessagingCluster controller and describes their shards.
type clusterPlane interface {
	messagingcluster.Plane
	shardPlane
}

// newTopology returns the topology of the configuration: one server, or a member of an ensemble.
func newTopology(s *server) topology {
	if s.cfg.Members.Enabled() {
		return newMember(s)
	}
	return single{s}
}

// waitFor sets what the health pages of a starting server and systemd report.
func (s *server) waitFor(what string) {
	s.waitsFor.Store(&what)
	s.systemd.Status("starting: waiting for " + what)
}

// whileAlive returns a handler that serves requests while this server is alive. Otherwise it
// rejects them with the error format of each surface.
func (s *server) whileAlive(routes http.Handler) http.Handler {
	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal.WriteHealth(w, r, web.ErrNoMajority.Error())
	})
	refused := newRouter(mounts(refusingHandlers(web.ErrNoMajority, health), s.cors()), s.cors())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.servers.Alive() {
			routes.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		refused.ServeHTTP(w, r)
	})
}

// change is a notification to the other servers: a write of a kind, the end of a session, or
// a change of the signing keys.
type change struct {
	Stored      *kinds.Change `json:"stored,omitempty"`
	Ended       *endedSignIn  `json:"ended,omitempty"`
	SigningKeys bool          `json:"signingKeys,omitempty"`
}

type endedSignIn struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
}

// applyChange applies a change of another member.
func (s *server) applyChange(ctx context.Context, text []byte) error {
	var c change
	if err := json.Unmarshal(text, &c); err != nil {
		return errs.Newf(errs.Invalid, "reading the change: %w", err)
	}
	switch {
	case c.Stored != nil:
		return s.kinds.Apply(*c.Stored)
	case c.Ended != nil:
		s.signIn.ApplyEnd(c.Ended.Key, c.Ended.Revision)
	case c.SigningKeys:
		return s.identity.keys.Refresh(ctx)
	}
	return nil
}

// replicas are the other servers, which serve the same objects, sign-in records and keys.
type replicas struct{ server *server }

// NotifyStored implements kinds.Replicas: it returns when all servers have applied a change.
func (r replicas) NotifyStored(stored kinds.Change) {
	r.server.servers.Confirm(change{Stored: &stored})
}

// NotifyEnd implements signin.Replicas: it returns when a session has ended on all servers.
func (r replicas) NotifyEnd(key string, revision int64) {
	r.server.servers.Confirm(change{Ended: &endedSignIn{key, revision}})
}

// NotifyWithdrawn implements identity.Replicas: it returns when all servers have read the signing
// keys again.
func (r replicas) NotifyWithdrawn() { r.server.servers.Confirm(change{SigningKeys: true}) }

// withdrawer returns the Withdrawer of the signing keys that the operator lists in a file.
func (s *server) withdrawer() *identity.Withdrawer {
	return &identity.Withdrawer{
		Keys: s.identity.keys, File: s.cfg.WithdrawnKeysFile(),
		Shared: s.cfg.Etcd.External() || s.cfg.Members.Enabled(), Replicas: replicas{s},
		Log: s.log,
	}
}
