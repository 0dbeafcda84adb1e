package kafkaapi

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
)

// memberUsesConsumer is the type of a member with the consumer protocol.
const memberUsesConsumer = 1

func consumerGroupDescribe(ctx context.Context, c *call, request *kmsg.ConsumerGroupDescribeRequest,
	response *kmsg.ConsumerGroupDescribeResponse,
) error {
	limit, room := within(len(request.Groups), 0), maxDescribed
	for _, name := range request.Groups {
		row := kmsg.NewConsumerGroupDescribeResponseGroup()
		row.Group, row.AuthorizedOperations = name, notAsked
		err := limit
		if err == nil {
			err = c.mayGroup(name, permitConsume, permitSubscriptions)
		}
		var d groups.Description
		if err == nil {
			d, err = c.coordinator().Describe(c.group(name))
		}
		if err == nil && d.Type != groups.TypeConsumer {
			err = groups.ErrNotConsumers
		}
		if err == nil {
			if room -= described(&d); room < 0 {
				err = errDescribed
			}
		}
		if err == nil {
			err = c.fillConsumers(ctx, &row, &d)
			if request.IncludeAuthorizedOperations {
				row.AuthorizedOperations = c.operationsOnGroup(name)
			}
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.fail(err)
			row.State, row.Members = "Dead", nil
		} else if request.IncludeAuthorizedOperations {
			row.AuthorizedOperations = c.operationsOnGroup(name)
		}
		response.Groups = append(response.Groups, row)
	}
	return nil
}

// fillConsumers describes a group. It returns an error without any member if the caller may not
// describe one of the group's topics.
func (c *call) fillConsumers(ctx context.Context, row *kmsg.ConsumerGroupDescribeResponseGroup,
	d *groups.Description,
) error {
	row.State, row.Epoch, row.AssignmentEpoch, row.AssignorName = d.State, d.Generation, d.AssignmentEpoch, d.Protocol
	known := make(map[engine.TopicID]string) // topic names; "" for deleted topics
	for i := range d.Members {
		m := &d.Members[i]
		for _, topic := range m.Consumer.Topics {
			if _, err := c.describedName(ctx, topic, known); err != nil {
				return err
			}
		}
		member := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		member.MemberID, member.ClientID, member.ClientHost = m.ID, m.ClientID, m.ClientHost
		member.MemberEpoch, member.MemberType = m.Consumer.Epoch, memberUsesConsumer
		member.SubscribedTopics = append([]string{}, m.Consumer.Names...)
		member.InstanceID, member.RackID, member.SubscribedTopicRegex = optional(m.InstanceID),
			optional(m.Consumer.Rack), optional(m.Consumer.Pattern)
		var err error
		if member.Assignment, err = c.described(ctx, m.Consumer.Assigned, known); err != nil {
			return err
		}
		if member.TargetAssignment, err = c.described(ctx, m.Consumer.Target, known); err != nil {
			return err
		}
		row.Members = append(row.Members, member)
	}
	return nil
}

// described returns partitions as an assignment with topic names. It omits deleted topics.
func (c *call) described(ctx context.Context, parts []groups.Partition,
	known map[engine.TopicID]string,
) (kmsg.Assignment, error) {
	assignment := kmsg.NewAssignment()
	last := -1 // index of the current topic
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			name, err := c.describedName(ctx, p.Topic, known)
			if err != nil {
				return assignment, err
			}
			last = -1
			if name != "" {
				t := kmsg.NewAssignmentTopicPartition()
				t.TopicID, t.Topic = c.session.cluster.topicID(uint64(p.Topic)), name
				assignment.TopicPartitions = append(assignment.TopicPartitions, t)
				last = len(assignment.TopicPartitions) - 1
			}
		}
		if last >= 0 {
			t := &assignment.TopicPartitions[last]
			t.Partitions = append(t.Partitions, p.Partition)
		}
	}
	return assignment, nil
}

// describedName returns the name of a topic, "" if it was deleted, or an error if the caller may
// not describe it.
func (c *call) describedName(ctx context.Context, id engine.TopicID, known map[engine.TopicID]string) (string, error) {
	if name, ok := known[id]; ok {
		return name, nil
	}
	name := ""
	switch topic, err := c.session.cluster.Broker.StreamTopicByID(ctx, uint64(id)); {
	case err == nil:
		if err := c.mayTopic(ctx, topic.Name(), describing...); err != nil {
			return "", fmt.Errorf("describing a topic of the group: %w", err)
		}
		name = c.printed(topic.Name())
	case c.codeOf(err) != codeUnknownTopic:
		return "", err
	}
	known[id] = name
	return name, nil
}

// optional returns a pointer to s, or nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return text(s)
}
