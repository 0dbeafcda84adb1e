package kafkaapi

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// singleNodeID is the node id of a single server.
const singleNodeID = 1

// Members is the ensemble that a cluster runs on (docs/spec/stream.md#members). SingleServer
// implements it for a server that is not part of one.
type Members interface {
	// Self returns the node id of this member.
	Self() int32
	// Nodes returns the addresses of the members that serve clients, by node id: those of
	// their TLS or plain-text listeners. A member without such a listener has none.
	Nodes(secured bool) map[int32]string
	// Leader returns the node that owns a topic, and its epoch; -1 for none.
	Leader(topic engine.TopicID) (node, epoch int32)
	// Coordinator returns the node that coordinates a group; -1 for none.
	Coordinator(group groups.Key) int32
}

// Node is a member as clients see it.
type Node struct {
	ID   int32
	Host string
	Port int32
}

// SingleServer implements Members for a single server: it leads every topic and coordinates
// every group. Nodes returns none, because clients reach it at the address that they use.
type SingleServer struct{}

// Self implements Members.
func (SingleServer) Self() int32 { return singleNodeID }

// Nodes implements Members.
func (SingleServer) Nodes(bool) map[int32]string { return nil }

// Leader implements Members.
func (SingleServer) Leader(engine.TopicID) (node, epoch int32) { return singleNodeID, 0 }

// Coordinator implements Members.
func (SingleServer) Coordinator(groups.Key) int32 { return singleNodeID }

// self returns the node id of this server.
func (c *call) self() int32 { return c.session.cluster.Members.Self() }

// nodes returns the brokers that a client of this connection can use. The first one is this server,
// at the address that the client is connected to.
func (c *call) nodes() []Node {
	host, port := c.conn.advertised()
	self := Node{ID: c.self(), Host: host, Port: port}
	nodes := []Node{self}
	members := c.session.cluster.Members.Nodes(c.conn.listener.TLS != nil)
	for _, id := range slices.Sorted(maps.Keys(members)) {
		host, port, err := net.SplitHostPort(members[id])
		number, wrong := strconv.ParseInt(port, 10, 32)
		if id != self.ID && err == nil && wrong == nil {
			nodes = append(nodes, Node{ID: id, Host: host, Port: int32(number)})
		}
	}
	return nodes
}

// leader returns the node that leads a topic, and its epoch; -1 for none.
func (c *call) leader(topic *messaging.KafkaTopic) (node, epoch int32) {
	return c.session.cluster.Members.Leader(engine.TopicID(topic.ID()))
}

// checkLeader returns an error unless this server leads the topic and epoch is the current leader epoch.
// An epoch of -1 is not checked.
func (c *call) checkLeader(topic *messaging.KafkaTopic, epoch int32) error {
	node, current := c.leader(topic)
	switch {
	case node < 0:
		return engine.ErrNoOwner
	case node != c.self():
		return engine.ErrNotOwner
	case epoch > current:
		return errUnknownLeaderEpoch
	case epoch >= 0 && epoch < current:
		return errFencedLeaderEpoch
	}
	return nil
}

// replicas returns the replicas of a topic's partitions.
func replicas(leader int32) []int32 {
	if leader < 0 {
		return []int32{}
	}
	return []int32{leader}
}

// coordinatorOf fills in the coordinator of a group. It returns false when there is none that the
// client can reach.
func (c *call) coordinatorOf(group string, row *kmsg.FindCoordinatorResponseCoordinator) bool {
	at := c.session.cluster.Members.Coordinator(c.group(group))
	for _, node := range c.nodes() {
		if node.ID == at {
			row.NodeID, row.Host, row.Port = node.ID, node.Host, node.Port
			return true
		}
	}
	return false
}

// In newer versions, the response to a request for a topic that another member leads names that
// member.

// newLeader returns the leader of a topic after a request failed with ErrNotOwner. ok is false for
// other errors, and when the leader is unknown.
func (c *call) newLeader(topic *messaging.KafkaTopic, err error) (at Node, epoch int32, ok bool) {
	if topic == nil || !errors.Is(err, engine.ErrNotOwner) {
		return Node{}, 0, false
	}
	leader, epoch := c.leader(topic)
	for _, node := range c.nodes() {
		if node.ID == leader && leader != c.self() {
			return node, epoch, true
		}
	}
	return Node{}, 0, false
}

// addProduceLeaderHint adds the current leader to a Produce response.
func (c *call) addProduceLeaderHint(response *kmsg.ProduceResponse, part *kmsg.ProduceResponseTopicPartition,
	p pendingBatch,
) {
	at, epoch, ok := c.newLeader(p.topic, p.err)
	if !ok {
		return
	}
	part.CurrentLeader.LeaderID, part.CurrentLeader.LeaderEpoch = at.ID, epoch
	if !slices.ContainsFunc(response.Brokers, func(b kmsg.ProduceResponseBroker) bool { return b.NodeID == at.ID }) {
		response.Brokers = append(response.Brokers,
			kmsg.ProduceResponseBroker{NodeID: at.ID, Host: at.Host, Port: at.Port, Rack: c.rack()})
	}
}

// addFetchLeaderHint adds the current leader to a Fetch response.
func (c *call) addFetchLeaderHint(response *fetchResponse, part *fetchResponsePartition,
	topic *fetchedTopic, err error,
) {
	at, epoch, ok := c.newLeader(topic.KafkaTopic, err)
	if !ok {
		return
	}
	part.leader.LeaderID, part.leader.LeaderEpoch = at.ID, epoch
	if !slices.ContainsFunc(response.brokers, func(b kmsg.FetchResponseBroker) bool { return b.NodeID == at.ID }) {
		response.brokers = append(response.brokers,
			kmsg.FetchResponseBroker{NodeID: at.ID, Host: at.Host, Port: at.Port, Rack: c.rack()})
	}
}
