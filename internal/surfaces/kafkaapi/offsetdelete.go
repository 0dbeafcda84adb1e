package kafkaapi

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// errSubscribed means that members still subscribe to a topic whose offsets are to be deleted.
var errSubscribed = errors.New("members of the group are subscribed to this topic; stop its consumers first")

// consumerProtocol is the protocol type of groups whose metadata lists topics.
const consumerProtocol = "consumer"

// offsetDelete deletes committed offsets of a group.
func offsetDelete(ctx context.Context, c *call, request *kmsg.OffsetDeleteRequest,
	response *kmsg.OffsetDeleteResponse,
) error {
	err := checkTopics(request.Topics, func(t *kmsg.OffsetDeleteRequestTopic) int { return len(t.Partitions) })
	if err == nil {
		err = checkGroupID(request.Group)
	}
	if err == nil {
		var topics []names.Topic
		for i := range request.Topics {
			if topic, err := c.topicName(ctx, request.Topics[i].Topic); err == nil {
				topics = append(topics, topic)
			}
		}
		err = c.authorizeDeleteOffsets(ctx, request.Group, topics)
	}
	var subscribed func(*messaging.KafkaTopic) bool
	if err == nil {
		subscribed, err = c.subscribed(request.Group)
	}
	if err != nil {
		response.ErrorCode = c.codeOf(err)
		return nil
	}
	var gone []groups.Partition
	for i := range request.Topics {
		requested := &request.Topics[i]
		row := kmsg.NewOffsetDeleteResponseTopic()
		row.Topic = requested.Topic
		topic, err := c.topic(ctx, requested.Topic, describePermissions...)
		if err == nil && subscribed(topic) {
			err = errSubscribed
		}
		for j := range requested.Partitions {
			part := kmsg.NewOffsetDeleteResponseTopicPartition()
			part.Partition = requested.Partitions[j].Partition
			switch {
			case err != nil:
				part.ErrorCode = c.codeOf(err)
			case !topic.HasPartition(part.Partition):
				part.ErrorCode = codeUnknownTopic
			default:
				gone = append(gone, groups.PartitionOf(topic.ID(), part.Partition))
			}
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	if len(gone) == 0 {
		return nil
	}
	err = c.onGroup(ctx, request.Group, deleteGroup, nil, false, func(caller groups.Caller) error {
		return c.coordinator().DeleteOffsets(ctx, c.group(request.Group), gone, caller.May)
	})
	c.auditAllowed(permitDeleteSubscription, c.groupScope(request.Group), err)
	if err != nil {
		response.ErrorCode, response.Topics = c.codeOf(err), nil
	}
	return ctx.Err()
}

// authorizeDeleteOffsets returns an error unless the caller may delete offsets of these topics in a group: it
// needs the permission on the group, or on all topics of the group and of the request.
func (c *call) authorizeDeleteOffsets(ctx context.Context, group string, topics []names.Topic) error {
	reads, err := c.coordinator().Reads(c.group(group))
	if err != nil {
		return err
	}
	if !reads.None() {
		reads.Topics = slices.Concat(reads.Topics, topics)
	}
	return c.authorizeReads(ctx, group, deleteGroup, reads)
}

// groupScope returns the name of a group in audit records.
func (c *call) groupScope(group string) string {
	scope := c.session.cluster.Scope
	scope.Tenant, scope.Subscription = c.session.namespace.Tenant, group
	return scope.String()
}

// subscribed returns a function that reports whether members of a group subscribe to a topic. It
// returns an error for members whose subscription cannot be decoded, because their topics are
// unknown.
func (c *call) subscribed(group string) (func(*messaging.KafkaTopic) bool, error) {
	d, err := c.coordinator().Describe(c.group(group))
	if err != nil {
		return nil, err
	}
	if d.Type == groups.TypeConsumer {
		wanted := make(map[engine.TopicID]bool)
		for i := range d.Members {
			for _, id := range d.Members[i].Consumer.Topics {
				wanted[id] = true
			}
		}
		return func(topic *messaging.KafkaTopic) bool { return wanted[engine.TopicID(topic.ID())] }, nil
	}
	protocol, metadata, err := c.coordinator().Metadata(c.group(group))
	if err != nil {
		return nil, err
	}
	if len(metadata) > 0 && protocol != consumerProtocol {
		return nil, groups.ErrNotEmpty
	}
	wanted := make(map[string]bool)
	for _, raw := range metadata {
		topics, err := subscription(raw)
		if err != nil {
			return nil, groups.ErrNotEmpty
		}
		for _, clientName := range topics {
			wanted[clientName] = true
		}
	}
	// Members may have another default namespace than the caller, so a bare name counts for every
	// namespace. This may reject a deletion without need, but never allows one that would affect a
	// member.
	return func(t *messaging.KafkaTopic) bool {
		topic := t.Name()
		space := topic.Namespace.Tenant + "/" + topic.Namespace.Name + "/" + topic.Local
		return wanted[topic.Local] || wanted[topic.Namespace.Tenant+"."+topic.Namespace.Name+"."+topic.Local] ||
			wanted[space] || wanted[topic.String()]
	}, nil
}

// subscription decodes the topics in the metadata of a consumer.
func subscription(raw []byte) (topics []string, err error) {
	var metadata kmsg.ConsumerMemberMetadata
	if err := metadata.ReadFrom(raw); err != nil {
		return nil, err
	}
	return metadata.Topics, nil
}
