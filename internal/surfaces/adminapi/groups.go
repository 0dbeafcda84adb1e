package adminapi

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
)

// Administration of Kafka consumer groups (docs/spec/stream.md#groups-over-http). A
// consumer group is not a subscription, but the permissions on subscriptions also
// apply to consumer groups.

var errNoKafka = errs.New(errs.NotFound,
	"cluster does not serve the Kafka protocol, so it has no consumer groups; "+
		"to enable it, set spec.config.protocols.stream on the cluster")

// groupBody is a consumer group. Only the response for a single group has Members and
// Offsets.
type groupBody struct {
	Kind         string        `json:"kind"`
	Tenant       string        `json:"tenant"`
	GroupID      string        `json:"group_id"`
	State        string        `json:"state"`
	GroupType    string        `json:"group_type"`
	ProtocolType string        `json:"protocol_type"`
	Protocol     string        `json:"protocol,omitempty"`
	Generation   *int32        `json:"generation,omitempty"`
	Leader       string        `json:"leader,omitempty"`
	Lag          *uint64       `json:"lag,omitempty"`
	Members      []memberBody  `json:"members,omitzero"`
	Offsets      []*offsetBody `json:"offsets,omitzero"`
}

type memberBody struct {
	MemberID   string `json:"member_id"`
	InstanceID string `json:"instance_id,omitempty"`
	ClientID   string `json:"client_id"`
	ClientHost string `json:"client_host"`
	// Assignment lists the member's partitions of topics that the caller may see; nil if
	// the server cannot determine them.
	Assignment []assignedBody `json:"assignment,omitzero"`
}

type assignedBody struct {
	TopicName  string  `json:"topic_name"`
	Partitions []int32 `json:"partitions"`
}

type offsetBody struct {
	TopicName   string `json:"topic_name"`
	PartitionID int32  `json:"partition_id"`
	Offset      int64  `json:"offset"`
	EndOffset   uint64 `json:"end_offset"`
	Lag         uint64 `json:"lag"`
	Metadata    string `json:"metadata,omitempty"`
	CommittedAt int64  `json:"committed_at"`
}

// groupCoordinator returns the coordinator of the cluster's consumer groups.
func (c *call) groupCoordinator() (*groups.Coordinator, error) {
	if c.Cluster.Groups == nil {
		return nil, errNoKafka
	}
	return c.Cluster.Groups.Coordinator()
}

// bindGroup parses the group from the path and its tenant from the query.
func (c *call) bindGroup() (*groups.Coordinator, groups.Key, error) {
	coordinator, err := c.groupCoordinator()
	if err != nil {
		return nil, groups.Key{}, err
	}
	key := c.groupKey()
	c.Group, c.Tenant = key.Group, key.Tenant
	return coordinator, key, nil
}

// groupKey returns the group that the path and the query name.
func (c *call) groupKey() groups.Key {
	return groups.Key{Tenant: cmp.Or(c.R.URL.Query().Get("tenant"), names.DefaultTenant), Group: c.param("group")}
}

// listGroups is GET /rest-stream/admin/v1/groups.
func (c *call) listGroups() error {
	coordinator, err := c.groupCoordinator()
	if err != nil {
		return err
	}
	tenants := []string{c.R.URL.Query().Get("tenant")}
	if tenants[0] == "" {
		if tenants, err = c.Cluster.Catalogue.Tenants(c.R.Context()); err != nil {
			return err
		}
	}
	data, err := c.allGroups(coordinator, tenants)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Kind string      `json:"kind"`
		Data []groupBody `json:"data"`
	}{"StreamGroupList", data})
}

// committedTopics returns the topics of committed offsets that still exist, in the order in which they were created.
func (c *call) committedTopics(offsets groups.Committed) (topics []*messaging.KafkaTopic, err error) {
	for _, id := range offsets.Topics() {
		topic, err := c.Cluster.Kafka.KafkaTopicByID(c.R.Context(), id)
		if errors.Is(err, messaging.ErrNoTopic) {
			continue
		}
		if err != nil {
			return nil, err
		}
		topics = append(topics, topic)
	}
	return topics, nil
}

// getGroup is GET /rest-stream/admin/v1/groups/{group}.
func (c *call) getGroup() error {
	coordinator, key, err := c.bindGroup()
	if err != nil {
		return err
	}
	d, committed, err := c.seeGroup(coordinator, key)
	if err != nil {
		return err
	}
	body := groupBody{
		Kind: "StreamGroup", Tenant: key.Tenant, GroupID: key.Group, State: d.State, GroupType: d.Type,
		ProtocolType: d.ProtocolType, Protocol: d.Protocol,
		Generation: &d.Generation, Leader: d.Leader, Lag: new(uint64), Members: []memberBody{},
		Offsets: []*offsetBody{},
	}
	c.addMembers(&body, &d)
	topics, err := c.committedTopics(committed)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if err := c.addOffsets(&body, committed, topic); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, body)
}

// seeGroup returns a group that exists and that the caller may see.
func (c *call) seeGroup(coordinator *groups.Coordinator, key groups.Key) (d groups.Description,
	committed groups.Committed, err error,
) {
	committed, reads, err := coordinator.CommittedAndReads(key)
	if err != nil {
		return d, committed, err
	}
	d, missing := coordinator.Describe(key)
	if missing != nil && !errors.Is(missing, groups.ErrNoGroup) {
		return d, committed, missing
	}
	if err := c.maySee(key, reads.Union(d.Reads)); err != nil {
		return d, committed, err
	}
	return d, committed, missing
}

// canSeeTopic reports whether the caller may see a topic that a group reads.
func (c *call) canSeeTopic(topic names.Topic, group string) bool {
	item := c.itemCall(topic.Namespace.Tenant, topic.Namespace, topic)
	item.Subscription = group
	return item.Require(slices.Concat(need("topics", "describe", "produce"), seeGroupPermissions)...) == nil
}

// addOffsets adds the offsets that a group committed for a topic, if the caller may see
// the topic.
func (c *call) addOffsets(body *groupBody, committed groups.Committed, topic *messaging.KafkaTopic) error {
	if !c.canSeeTopic(topic.Name(), body.GroupID) {
		return nil
	}
	extents, err := topic.Extents(c.R.Context())
	if err != nil {
		return err
	}
	for i, extent := range extents {
		index := int32(i) //nolint:gosec // a topic has 1,024 partitions at most
		o, ok := committed.Offset(groups.PartitionOf(topic.ID(), index))
		if !ok {
			continue
		}
		row := &offsetBody{
			TopicName: topic.Name().ListName(), PartitionID: index, Offset: o.Offset, EndOffset: extent.Next,
			Lag: groups.Lag(extent.First, extent.Next, o.Offset), Metadata: o.Metadata, CommittedAt: o.Time,
		}
		*body.Lag += row.Lag
		body.Offsets = append(body.Offsets, row)
	}
	return nil
}

// deleteGroup is DELETE /rest-stream/admin/v1/groups/{group}.
func (c *call) deleteGroup() error {
	coordinator, key, err := c.bindGroup()
	if err != nil {
		return err
	}
	remove := need("subscriptions", "delete")
	check, err := c.checkGroup(key, remove, remove)
	if err != nil {
		return err
	}
	return c.done(check.act(coordinator, key, func(caller groups.Caller) error {
		return coordinator.Delete(c.R.Context(), key, caller.May)
	}))
}

// addGroups adds the consumer groups of the topic's tenant that read the topic and that the
// caller may see. It does nothing if the cluster does not serve the Kafka protocol.
func (c *call) addGroups(body *statsBody, s *messaging.Stats) error {
	if c.Cluster.Groups == nil {
		return nil
	}
	q := &groups.LagQuery{Tenant: c.Topic.Namespace.Tenant, Topic: s.Topic.ID, From: max(s.Topic.Partition, 0)}
	for i := range s.Partitions {
		q.Partitions = append(q.Partitions, groups.Bounds{First: s.Partitions[i].First, Next: s.Partitions[i].Next})
	}
	coordinator, err := c.groupCoordinator()
	if err != nil {
		return err
	}
	list, complete, err := c.Cluster.Members.GroupsReading(c.R.Context(), coordinator, q)
	if err != nil {
		return err
	}
	for name, group := range list {
		reads := group.Reads
		group.Reads = nil
		if reads == nil || !c.sees(groups.Key{Tenant: q.Tenant, Group: name}, *reads) {
			delete(list, name)
		}
	}
	body.Groups, body.GroupsIncomplete = list, !complete
	return nil
}
