package ensemble

import (
	"context"
	"log/slog"
	"net/http"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/history"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/forwarding"
	"freshet/internal/ensemble/membership"
	"freshet/internal/storage/engine"
)

// Members is the ensemble of this member, as ensemble.Member is.
type Members interface {
	Self() string
	// Names returns all members in the order of the configuration.
	Names() []string
	// Live returns the members with valid leases.
	Live() []membership.Record
	// Sender returns the Sender to an owner, or nil if this member serves the request.
	Sender(owner engine.Owner) forwarding.Sender
	// Post sends a member a JSON request and decodes the response into out.
	Post(ctx context.Context, member, path string, in, out any) error
}

// LocalClusters are the clusters of this member.
type LocalClusters interface {
	// Clusters returns the open clusters.
	Clusters() []*dataplane.Cluster
	// Groups returns this member's coordinator of a cluster's consumer groups.
	Groups(c *dataplane.Cluster) (*groups.Coordinator, error)
}

// Router finds the members that serve the topics and consumer groups of clusters. All fields
// are required.
type Router struct {
	Members Members
	Local   LocalClusters
	History *history.Recorder
	Logger  *slog.Logger
}

// Routes returns the members of a cluster for calls over HTTP.
func (r *Router) Routes(c *dataplane.Cluster) Routes { return Routes{r, c} }

// Nodes returns the members of a cluster as Kafka brokers.
func (r *Router) Nodes(c *dataplane.Cluster) Nodes { return Nodes{r.Members, c} }

// Routes finds the members that serve the calls on one cluster.
type Routes struct {
	router  *Router
	cluster *dataplane.Cluster
}

// Owner returns the sender to the member that owns a topic, or nil if this member serves the
// request. A request is forwarded at most once.
func (o Routes) Owner(r *http.Request, topic names.Topic) forwarding.Sender {
	if forwarding.Forwarded(r) {
		return nil
	}
	id, ok := o.cluster.Broker.Catalogue.IDOf(r.Context(), topic)
	if !ok {
		return nil // the topic does not exist, or this call creates it
	}
	return o.router.Members.Sender(o.cluster.OwnerOf(id))
}

// Coordinator is Owner for consumer groups.
func (o Routes) Coordinator(r *http.Request, group groups.Key) forwarding.Sender {
	if forwarding.Forwarded(r) {
		return nil
	}
	return o.router.Members.Sender(o.cluster.CoordinatorOf(group))
}

// Coordinators returns the senders to all other members that coordinate consumer groups, or that
// the request was already forwarded.
func (o Routes) Coordinators(r *http.Request) (others []forwarding.Sender, forwarded bool, err error) {
	if forwarding.Forwarded(r) {
		return nil, true, nil
	}
	owners, err := o.cluster.Coordinators(r.Context())
	if err != nil {
		return nil, false, err
	}
	for _, owner := range owners {
		if send := o.router.Members.Sender(owner); send != nil {
			others = append(others, send)
		}
	}
	return others, false, nil
}

// Nodes describes the members of one cluster as Kafka brokers.
type Nodes struct {
	members Members
	cluster *dataplane.Cluster
}

// node returns the Kafka node id of a member, or -1 if the member does not exist.
func (n Nodes) node(name string) int32 {
	for i, member := range n.members.Names() {
		if member == name {
			return int32(i) + 1
		}
	}
	return -1
}

// Self returns the node id of this member.
func (n Nodes) Self() int32 { return n.node(n.members.Self()) }

// Nodes returns the addresses of the live members for Kafka clients, by node id.
func (n Nodes) Nodes(secured bool) map[int32]string {
	nodes := map[int32]string{}
	for _, record := range n.members.Live() {
		nodes[n.node(record.Name)] = record.Stream
		if secured {
			nodes[n.node(record.Name)] = record.StreamTLS
		}
	}
	return nodes
}

// Leader returns the node that owns a topic, and its epoch; -1 for none.
func (n Nodes) Leader(topic engine.TopicID) (node, epoch int32) {
	owner := n.cluster.OwnerOf(topic)
	return n.node(owner.Member), int32(owner.Epoch) //nolint:gosec // owners do not change 2^31 times
}

// Coordinator returns the node that coordinates a group; -1 for none.
func (n Nodes) Coordinator(group groups.Key) int32 {
	return n.node(n.cluster.CoordinatorOf(group).Member)
}
