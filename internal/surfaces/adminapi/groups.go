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
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
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

// seeGroupPermissions are the permissions to see a group; any one of them is enough.
var seeGroupPermissions = append(need("subscriptions", "describe"), brokerhttp.PermitConsume)

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

// authorizeGroup checks that the caller has one of the wanted permissions on a group: in the
// group's tenant or, without that, on the topics that the group reads. If each is set,
// the caller needs it on all of these topics, otherwise on one of them.
func (c *call) authorizeGroup(coordinator *groups.Coordinator, key groups.Key, each bool,
	permissions ...access.Permission,
) error {
	denied := c.Require(permissions...)
	if denied == nil || errs.KindOf(denied) != errs.Denied {
		return denied
	}
	_, topics, err := c.committed(coordinator, key)
	if err != nil {
		return err
	}
	defer func() { c.Topic, c.Subscription = names.Topic{}, "" }()
	for _, topic := range topics {
		c.Topic, c.Subscription = topic.Name(), key.Group
		err := c.Require(permissions...)
		if err == nil && !each {
			return nil
		}
		if err != nil && (each || errs.KindOf(err) != errs.Denied) {
			return err
		}
	}
	if each && len(topics) > 0 {
		return nil
	}
	return denied
}

// committed returns the offsets that a group has committed, and those of their topics
// that still exist, in the order in which they were created. A failed lookup is an error
// and not skipped, because the caller may have no permission on that topic.
func (c *call) committed(
	coordinator *groups.Coordinator, key groups.Key,
) (offsets groups.Committed, topics []*messaging.KafkaTopic, err error) {
	offsets, err = coordinator.Committed(key)
	if err != nil {
		return offsets, nil, err
	}
	for _, id := range offsets.Topics() {
		topic, err := c.Cluster.Kafka.KafkaTopicByID(c.R.Context(), id)
		if errors.Is(err, messaging.ErrNoTopic) {
			continue
		}
		if err != nil {
			return offsets, nil, err
		}
		topics = append(topics, topic)
	}
	return offsets, topics, nil
}

// getGroup is GET /rest-stream/admin/v1/groups/{group}.
func (c *call) getGroup() error {
	coordinator, key, err := c.bindGroup()
	if err != nil {
		return err
	}
	if err := c.authorizeGroup(coordinator, key, false, seeGroupPermissions...); err != nil {
		return err
	}
	d, err := coordinator.Describe(key)
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
	committed, topics, err := c.committed(coordinator, key)
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
	if err := c.authorizeGroup(coordinator, key, true, need("subscriptions", "delete")...); err != nil {
		return err
	}
	return c.done(coordinator.Delete(c.R.Context(), key))
}

// addGroups adds the consumer groups of the topic's tenant that read the topic. It does
// nothing if the cluster does not serve the Kafka protocol.
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
	body.Groups, body.GroupsIncomplete = list, !complete
	return err
}
