package kafkaapi

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// nodeID is the one broker's where there is no group.
const nodeID = 1

// Members is the group of members that a cluster runs on
// (docs/spec/stream.md#members).
type Members interface {
	// Self is the node id of this member.
	Self() int32
	// Nodes are the members that serve clients, by node id, with their addresses for
	// clients of plain or of secured listeners.
	Nodes(secured bool) []Node
	// Leader returns the node that owns a topic and its epoch; -1 for nobody.
	Leader(topic engine.TopicID) (node, epoch int32)
	// Coordinator returns the node that coordinates a group; -1 for nobody.
	Coordinator(group groups.Key) int32
}

// Node is a member as clients see it.
type Node struct {
	ID   int32
	Host string
	Port int32
}

// self is the node id of this server.
func (c *call) self() int32 {
	if members := c.session.cluster.Members; members != nil {
		return members.Self()
	}
	return nodeID
}

// nodes are the brokers that a client of this connection can go to. This one always
// is among them, at the address that the client came to.
func (c *call) nodes() []Node {
	host, port := c.conn.advertised()
	self := Node{ID: c.self(), Host: host, Port: port}
	members := c.session.cluster.Members
	if members == nil {
		return []Node{self}
	}
	nodes := []Node{self}
	for _, node := range members.Nodes(c.conn.listener.TLS != nil) {
		if node.ID != self.ID {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// leader is where a topic is, -1 for nowhere.
func (c *call) leader(topic *messaging.StreamTopic) (node, epoch int32) {
	if members := c.session.cluster.Members; members != nil {
		return members.Leader(engine.TopicID(topic.ID()))
	}
	return nodeID, 0
}

// leads says whether a topic is here, and whether that is what the client knows: an
// epoch of -1 is nothing.
func (c *call) leads(topic *messaging.StreamTopic, epoch int32) error {
	node, current := c.leader(topic)
	switch {
	case node < 0:
		return engine.ErrNoOwner
	case node != c.self():
		return engine.ErrNotOwner
	case epoch > current:
		return errEpoch
	case epoch >= 0 && epoch < current:
		return errFenced
	}
	return nil
}

// replicas is where the partitions of a topic are served.
func replicas(leader int32) []int32 {
	if leader < 0 {
		return []int32{}
	}
	return []int32{leader}
}

// coordinatorOf fills in where a group is coordinated, if it is anywhere that the
// client can reach.
func (c *call) coordinatorOf(group string, row *kmsg.FindCoordinatorResponseCoordinator) bool {
	at := c.self()
	if members := c.session.cluster.Members; members != nil {
		at = members.Coordinator(c.group(group))
	}
	for _, node := range c.nodes() {
		if node.ID == at {
			row.NodeID, row.Host, row.Port = node.ID, node.Host, node.Port
			return true
		}
	}
	return false
}

// Clients of newer versions are told in the same answer where a topic is that is not
// here.

// moved returns where a topic is that a request has failed for; ok is false when that
// is not why, or nobody knows.
func (c *call) moved(topic *messaging.StreamTopic, err error) (at Node, epoch int32, ok bool) {
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

// hintProducer tells a producer where to go.
func (c *call) hintProducer(response *kmsg.ProduceResponse, part *kmsg.ProduceResponseTopicPartition, p placed) {
	at, epoch, ok := c.moved(p.topic, p.err)
	if !ok {
		return
	}
	part.CurrentLeader.LeaderID, part.CurrentLeader.LeaderEpoch = at.ID, epoch
	if !slices.ContainsFunc(response.Brokers, func(b kmsg.ProduceResponseBroker) bool { return b.NodeID == at.ID }) {
		response.Brokers = append(response.Brokers,
			kmsg.ProduceResponseBroker{NodeID: at.ID, Host: at.Host, Port: at.Port, Rack: c.rack()})
	}
}

// hintConsumer tells a consumer where to go.
func (c *call) hintConsumer(response *fetchResponse, part *fetchResponsePartition, topic *fetchedTopic, err error) {
	at, epoch, ok := c.moved(topic.StreamTopic, err)
	if !ok {
		return
	}
	part.leader.LeaderID, part.leader.LeaderEpoch = at.ID, epoch
	if !slices.ContainsFunc(response.brokers, func(b kmsg.FetchResponseBroker) bool { return b.NodeID == at.ID }) {
		response.brokers = append(response.brokers,
			kmsg.FetchResponseBroker{NodeID: at.ID, Host: at.Host, Port: at.Port, Rack: c.rack()})
	}
}
