package kafkaapi

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// Types of members.
const (
	memberTypeClassic  = 0
	memberTypeConsumer = 1
)

func consumerGroupDescribe(ctx context.Context, c *call, request *kmsg.ConsumerGroupDescribeRequest,
	response *kmsg.ConsumerGroupDescribeResponse,
) error {
	ctx = access.WithBudget(ctx)
	limit, budget := checkRequestSize(len(request.Groups), 0), maxDescriptionBytes
	for _, name := range request.Groups {
		row := kmsg.NewConsumerGroupDescribeResponseGroup()
		row.Group, row.AuthorizedOperations = name, operationsNotRequested
		err := limit
		if err == nil {
			err = checkGroupID(name)
		}
		var d groups.Description
		if err == nil {
			d, err = c.describe(ctx, name)
		}
		if err == nil && d.Type != groups.TypeConsumer {
			err = groups.ErrNotConsumerProtocol
		}
		if err == nil {
			if budget -= descriptionSize(&d); budget < 0 {
				err = errDescriptionSize
			}
		}
		if err == nil {
			err = c.fillConsumers(ctx, &row, &d)
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
			row.State, row.Members = "", nil
		} else if request.IncludeAuthorizedOperations {
			row.AuthorizedOperations = c.operationsOnGroup(ctx, &d)
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
			if _, err := c.describableName(ctx, topic, known); err != nil {
				return err
			}
		}
		member := kmsg.NewConsumerGroupDescribeResponseGroupMember()
		member.MemberID, member.ClientID, member.ClientHost = m.ID, m.ClientID, m.ClientHost
		member.MemberEpoch, member.MemberType = m.Consumer.Epoch, memberTypeConsumer
		if m.Consumer.Classic {
			member.MemberType = memberTypeClassic
		}
		member.SubscribedTopics = append([]string{}, m.Consumer.Names...)
		member.InstanceID, member.RackID, member.SubscribedTopicRegex = optional(m.InstanceID),
			optional(m.Consumer.Rack), text(m.Consumer.Pattern)
		var err error
		if member.Assignment, err = c.namedAssignment(ctx, m.Consumer.Assigned, known); err != nil {
			return err
		}
		if member.TargetAssignment, err = c.namedAssignment(ctx, m.Consumer.Target, known); err != nil {
			return err
		}
		row.Members = append(row.Members, member)
	}
	return nil
}

// namedAssignment returns partitions as an assignment with topic names. It omits deleted topics.
func (c *call) namedAssignment(ctx context.Context, parts []groups.Partition,
	known map[engine.TopicID]string,
) (kmsg.Assignment, error) {
	assignment := kmsg.NewAssignment()
	last := -1 // index of the current topic
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			name, err := c.describableName(ctx, p.Topic, known)
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

// describableName returns the name of a topic, "" if it was deleted, or an error if the caller may
// not describe it.
func (c *call) describableName(ctx context.Context, id engine.TopicID,
	known map[engine.TopicID]string,
) (string, error) {
	if name, ok := known[id]; ok {
		return name, nil
	}
	name := ""
	switch topic, err := c.session.cluster.Topics.KafkaTopicByID(ctx, uint64(id)); {
	case err == nil:
		if err := c.authorizeTopic(ctx, topic.Name(), describePermissions...); err != nil {
			return "", fmt.Errorf("describing a topic of the group: %w", err)
		}
		name = c.displayName(topic.Name())
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
