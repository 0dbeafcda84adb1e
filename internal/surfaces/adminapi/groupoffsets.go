package adminapi

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// targetOffsetBody is the offset to commit for a topic: a number, the earliest or latest
// stored offset, or that of the first message at or after a time.
type targetOffsetBody struct {
	TopicName   string `json:"topic_name"`
	PartitionID *int32 `json:"partition_id"` // nil: all partitions
	Offset      *int64 `json:"offset"`
	Position    string `json:"position"`
	Timestamp   *int64 `json:"timestamp"`
	Metadata    string `json:"metadata"`

	topic *messaging.KafkaTopic
}

// setGroupOffsets is PUT /rest-stream/admin/v1/groups/{group}/offsets.
func (c *call) setGroupOffsets() error {
	coordinator, key, err := c.bindGroup()
	if err != nil {
		return err
	}
	var body struct {
		Offsets []targetOffsetBody `json:"offsets"`
	}
	if ok, err := c.Decode(&body, maxAdminBody); err != nil {
		return err
	} else if !ok || len(body.Offsets) == 0 {
		return brokerhttp.BadBody("offsets must name at least one topic")
	}
	for i := range body.Offsets {
		if err := c.findTopic(&body.Offsets[i]); err != nil {
			return err
		}
	}
	commit := &groups.CommitRequest{Generation: -1, Offsets: make(map[groups.Partition]groups.Offset)}
	for i := range body.Offsets {
		if err := body.Offsets[i].addTo(c.R.Context(), commit.Offsets); err != nil {
			return err
		}
		commit.Topics = append(commit.Topics, body.Offsets[i].topic.Name())
	}
	check, err := c.checkGroup(key, moveGroup, moveGroup, commit.Topics...)
	if err != nil {
		return err
	}
	err = check.act(coordinator, key, func(caller groups.Caller) error {
		commit.Caller = caller
		return coordinator.Commit(c.R.Context(), key, commit)
	})
	if errors.Is(err, groups.ErrUnknownMember) {
		err = groups.ErrNotEmpty
	}
	return c.done(err)
}

// moveGroup are the permissions to change the offsets of a group, any one of them on the group or on each topic.
var moveGroup = append(need("subscriptions", "update"), brokerhttp.PermitConsume)

// findTopic looks up the topic of p, if the caller may change the group's offsets there.
// That needs the same permissions as moving a subscription of the group's name. If the
// topic belongs to another tenant than the group, the group's tenant must permit it too.
func (c *call) findTopic(p *targetOffsetBody) error {
	topic, err := names.ParseListName(p.TopicName)
	if err != nil {
		return brokerhttp.BadBody("topic_name: %w", err)
	}
	if topic.Namespace.Tenant != c.Tenant {
		if err := c.Require(moveGroup...); err != nil {
			return err
		}
	}
	c.Topic, c.Subscription = topic, c.Group
	defer func() { c.Topic, c.Subscription = names.Topic{}, "" }()
	if err := c.Require(moveGroup...); err != nil {
		return err
	}
	if p.topic, err = c.Cluster.Kafka.KafkaTopic(c.R.Context(), topic); errors.Is(err, messaging.ErrPartitionName) {
		err = brokerhttp.BadBody("topic_name must name a topic, not a partition; use partition_id for the partition")
	}
	return err
}

// addTo adds the offsets that p selects to a commit.
func (p *targetOffsetBody) addTo(ctx context.Context, offsets map[groups.Partition]groups.Offset) error {
	choices := 0
	for _, is := range []bool{p.Offset != nil, p.Position != "", p.Timestamp != nil} {
		if is {
			choices++
		}
	}
	if choices != 1 {
		return brokerhttp.BadBody("%s: set exactly one of offset, position and timestamp", p.TopicName)
	}
	extents, err := p.topic.Extents(ctx)
	if err != nil {
		return err
	}
	if p.PartitionID != nil && (*p.PartitionID < 0 || int(*p.PartitionID) >= len(extents)) {
		return errs.Newf(errs.NotFound, "topic %s has no partition %d", p.TopicName, *p.PartitionID)
	}
	for i, extent := range extents {
		index := int32(i) //nolint:gosec // a topic has 1,024 partitions at most
		if p.PartitionID != nil && *p.PartitionID != index {
			continue
		}
		at, err := p.offset(ctx, index, extent.First, extent.Next)
		if err != nil {
			return err
		}
		offsets[groups.PartitionOf(p.topic.ID(), index)] = groups.Offset{
			Offset:      int64(at), //nolint:gosec // entry numbers are far below the maximum
			LeaderEpoch: -1, Metadata: p.Metadata,
		}
	}
	return nil
}

// offset returns the offset that p selects in a partition whose stored entries are
// first up to, not including, next.
func (p *targetOffsetBody) offset(ctx context.Context, partition int32, first, next uint64) (uint64, error) {
	switch {
	case p.Offset != nil:
		if *p.Offset < 0 || uint64(*p.Offset) < first || uint64(*p.Offset) > next {
			return 0, brokerhttp.BadBody("%s: offset %d is not between %d and %d, the bounds of partition %d",
				p.TopicName, *p.Offset, first, next, partition)
		}
		return uint64(*p.Offset), nil
	case p.Timestamp != nil:
		if *p.Timestamp < 0 {
			return 0, brokerhttp.BadBody("%s: timestamp must not be negative", p.TopicName)
		}
		entry, err := p.topic.Find(ctx, partition, *p.Timestamp)
		if err != nil || !entry.OK {
			return next, err
		}
		return entry.Entry, nil
	case p.Position == "earliest":
		return first, nil
	case p.Position == "latest":
		return next, nil
	}
	return 0, brokerhttp.BadBody("%s: position must be earliest or latest", p.TopicName)
}
