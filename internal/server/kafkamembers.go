package server

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	"freshet/internal/broker/groups"
	"freshet/internal/dataplane"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/kafkaapi"
)

// kafkaMembers returns the ensemble as Kafka brokers, or nil for a single server.
func (s *server) kafkaMembers(c *dataplane.Cluster) kafkaapi.Members {
	if s.ensemble == nil {
		return nil
	}
	return clusterMembers{s, c}
}

// clusterMembers implements kafkaapi.Members for one cluster.
type clusterMembers struct {
	s       *server
	cluster *dataplane.Cluster
}

// node returns the Kafka node id of a member, or -1 if the member does not exist.
func (m clusterMembers) node(name string) int32 {
	for i, member := range m.s.cfg.Members.List {
		if member.Name == name {
			return int32(i) + 1
		}
	}
	return -1
}

// Self implements kafkaapi.Members.
func (m clusterMembers) Self() int32 { return m.node(m.s.cfg.Members.Self) }

// Nodes implements kafkaapi.Members.
func (m clusterMembers) Nodes(secured bool) []kafkaapi.Node {
	var nodes []kafkaapi.Node
	for _, record := range m.s.ensemble.members.Live() {
		address := record.Stream
		if secured {
			address = record.StreamTLS
		}
		host, port, err := net.SplitHostPort(address)
		number, wrong := strconv.ParseInt(port, 10, 32)
		if err != nil || wrong != nil {
			continue // the member does not have this listener
		}
		nodes = append(nodes, kafkaapi.Node{ID: m.node(record.Name), Host: host, Port: int32(number)})
	}
	slices.SortFunc(nodes, func(a, b kafkaapi.Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes
}

// Leader implements kafkaapi.Members.
func (m clusterMembers) Leader(topic engine.TopicID) (node, epoch int32) {
	owner := m.cluster.OwnerOf(topic)
	return m.node(owner.Member), int32(owner.Epoch) //nolint:gosec // owners do not change 2^31 times
}

// Coordinator implements kafkaapi.Members.
func (m clusterMembers) Coordinator(group groups.Key) int32 {
	return m.node(m.cluster.CoordinatorOf(group).Member)
}
