package kafkaapi

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// describeShareGroupOffsets returns where the subscriptions of share groups are: the start offset is the first record
// that is not acknowledged.
func describeShareGroupOffsets(ctx context.Context, c *call, request *kmsg.DescribeShareGroupOffsetsRequest,
	response *kmsg.DescribeShareGroupOffsetsResponse,
) error {
	ctx = access.WithBudget(ctx)
	topics, partitions := 0, 0
	for i := range request.Groups {
		topics += len(request.Groups[i].Topics)
		for j := range request.Groups[i].Topics {
			partitions += len(request.Groups[i].Topics[j].Partitions)
		}
	}
	limit := checkRequestSize(max(topics, len(request.Groups)), partitions)
	for i := range request.Groups {
		requested := &request.Groups[i]
		row := kmsg.NewDescribeShareGroupOffsetsResponseGroup()
		row.GroupID = requested.GroupID
		err := limit
		if err == nil {
			err = c.describeShareOffsets(ctx, requested, &row)
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
			row.Topics = nil
		}
		response.Groups = append(response.Groups, row)
	}
	return nil
}

func (c *call) describeShareOffsets(ctx context.Context, requested *kmsg.DescribeShareGroupOffsetsRequestGroup,
	row *kmsg.DescribeShareGroupOffsetsResponseGroup,
) error {
	if err := c.authorizeCoordinator(ctx, requested.GroupID); err != nil {
		return err
	}
	if err := c.checkCoordinator(requested.GroupID); err != nil {
		return err
	}
	if requested.Topics == nil {
		topics, err := c.sharedTopics(ctx, requested.GroupID)
		if err != nil {
			return err
		}
		if len(topics) == 0 {
			return c.noShareGroup(ctx, requested.GroupID)
		}
		for _, topic := range topics {
			out := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopic()
			out.Topic, out.TopicID = c.displayName(topic.Name()), c.session.cluster.topicID(topic.ID())
			for p := range topic.Partitions() {
				out.Partitions = append(out.Partitions, c.describedShareOffset(topic, p))
			}
			row.Topics = append(row.Topics, out)
		}
		return nil
	}
	for i := range requested.Topics {
		out := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopic()
		out.Topic = requested.Topics[i].Topic
		topic, err := c.seenShared(ctx, out.Topic, requested.GroupID, seeShared...)
		if err == nil {
			out.TopicID = c.session.cluster.topicID(topic.ID())
		}
		for _, p := range requested.Topics[i].Partitions {
			part := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopicPartition()
			switch {
			case err != nil:
				part.ErrorCode, part.ErrorMessage = c.errorResponse(err)
			case !topic.HasPartition(p):
				part.ErrorCode, part.ErrorMessage = c.errorResponse(engine.ErrNoPartition)
			default:
				part = c.describedShareOffset(topic, p)
			}
			part.Partition = p
			out.Partitions = append(out.Partitions, part)
		}
		row.Topics = append(row.Topics, out)
	}
	return nil
}

// describedShareOffset returns a partition's row, with the start offset -1 if the topic does not have the subscription.
func (c *call) describedShareOffset(topic sharedTopic, partition int32,
) kmsg.DescribeShareGroupOffsetsResponseGroupTopicPartition {
	part := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopicPartition()
	part.Partition, part.StartOffset = partition, -1
	if int(partition) < len(topic.offsets) {
		at := topic.offsets[partition]
		part.StartOffset, part.Lag = int64(at.Start), int64(at.Lag) //nolint:gosec // offsets are far below 2^63
		_, part.LeaderEpoch = c.leader(topic.KafkaTopic)
	}
	return part
}

// seenShared returns a topic, and the offsets of a group's subscription, if the caller has one of the permissions on
// them. The subscription need not exist.
func (c *call) seenShared(ctx context.Context, clientName, group string,
	wanted ...access.Permission,
) (sharedTopic, error) {
	name, err := c.subscribedName(ctx, clientName, group)
	if err != nil {
		return sharedTopic{}, err
	}
	if err := c.authorizeShared(ctx, name, group, wanted...); err != nil {
		return sharedTopic{}, err
	}
	topic, err := c.session.cluster.Topics.KafkaTopic(ctx, name)
	if err != nil {
		return sharedTopic{}, err
	}
	offsets, err := c.session.cluster.Shares.Offsets(ctx, topic)
	return sharedTopic{topic, offsets[group]}, err
}

// errNotShared means that a topic does not have the subscription of a share group.
var errNotShared = fmt.Errorf("%w; a member of the group creates it when it subscribes to the topic",
	messaging.ErrNoSubscription)

// editableShare returns an error unless the caller may use some group of that name and this server coordinates it.
func (c *call) editableShare(ctx context.Context, group string) error {
	if err := c.authorizeCoordinator(ctx, group); err != nil {
		return err
	}
	if err := messaging.CheckShareGroup(group); err != nil {
		return fmt.Errorf("%w: %w", groups.ErrGroupID, err)
	}
	return c.checkCoordinator(group)
}

// alterShareGroupOffsets moves the subscriptions of a share group without members.
func alterShareGroupOffsets(ctx context.Context, c *call, request *kmsg.AlterShareGroupOffsetsRequest,
	response *kmsg.AlterShareGroupOffsetsResponse,
) error {
	ctx = access.WithBudget(ctx)
	err := checkTopics(request.Topics,
		func(t *kmsg.AlterShareGroupOffsetsRequestTopic) int { return len(t.Partitions) })
	if err == nil {
		err = c.editableShare(ctx, request.GroupID)
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		return nil
	}
	for i := range request.Topics {
		requested := &request.Topics[i]
		row := kmsg.NewAlterShareGroupOffsetsResponseTopic()
		row.Topic = requested.Topic
		topic, err := c.editedShare(ctx, requested.Topic, request.GroupID, permitUpdateSubscription, permitConsume)
		if topic.KafkaTopic != nil {
			row.TopicID = c.session.cluster.topicID(topic.ID())
		}
		for _, p := range requested.Partitions {
			part := kmsg.NewAlterShareGroupOffsetsResponseTopicPartition()
			part.Partition = p.Partition
			failed := err
			switch {
			case failed != nil:
			case !topic.HasPartition(p.Partition):
				failed = engine.ErrNoPartition
			case p.StartOffset < 0:
				failed = fmt.Errorf("%w: start offset %d is negative", errInvalid, p.StartOffset)
			default:
				failed = c.session.cluster.Shares.Seek(ctx, topic.KafkaTopic, request.GroupID, p.Partition,
					uint64(p.StartOffset))
			}
			part.ErrorCode, part.ErrorMessage = c.errorResponse(failed)
			row.Partitions = append(row.Partitions, part)
		}
		if topic.KafkaTopic != nil {
			c.auditAllowed(permitUpdateSubscription, topic.Name().String(), err)
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// editedShare returns a topic with the subscription of a group without members, if the caller has one of the
// permissions.
func (c *call) editedShare(ctx context.Context, clientName, group string,
	wanted ...access.Permission,
) (sharedTopic, error) {
	topic, err := c.seenShared(ctx, clientName, group, wanted...)
	if err != nil {
		return sharedTopic{}, err
	}
	if len(topic.offsets) == 0 {
		return sharedTopic{}, errNotShared
	}
	return topic, c.coordinator().CheckNoShareMembers(c.group(group))
}

// deleteShareGroupOffsets deletes the subscriptions of a share group without members on some topics.
func deleteShareGroupOffsets(ctx context.Context, c *call, request *kmsg.DeleteShareGroupOffsetsRequest,
	response *kmsg.DeleteShareGroupOffsetsResponse,
) error {
	ctx = access.WithBudget(ctx)
	err := checkRequestSize(len(request.Topics), 0)
	if err == nil {
		err = c.editableShare(ctx, request.GroupID)
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		return nil
	}
	for i := range request.Topics {
		row := kmsg.NewDeleteShareGroupOffsetsResponseTopic()
		row.Topic = request.Topics[i].Topic
		topic, err := c.editedShare(ctx, row.Topic, request.GroupID, permitDeleteSubscription)
		if topic.KafkaTopic != nil {
			row.TopicID = c.session.cluster.topicID(topic.ID())
		}
		if err == nil {
			err = c.session.cluster.Shares.Delete(ctx, topic.KafkaTopic, request.GroupID)
			c.auditAllowed(permitDeleteSubscription, topic.Name().String(), err)
		}
		row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
		response.Topics = append(response.Topics, row)
	}
	return nil
}
