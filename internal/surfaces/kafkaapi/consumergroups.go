package kafkaapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

func consumerGroupHeartbeat(ctx context.Context, c *call, request *kmsg.ConsumerGroupHeartbeatRequest,
	response *kmsg.ConsumerGroupHeartbeatResponse,
) error {
	err := checkTopics(request.Topics,
		func(t *kmsg.ConsumerGroupHeartbeatRequestTopic) int { return len(t.Partitions) })
	var named []names.Topic
	if err == nil {
		named, err = c.authorizeSubscription(ctx, request)
	}
	var heartbeat *groups.ConsumerRequest
	if err == nil {
		heartbeat, err = c.consumerRequest(ctx, request)
	}
	if err == nil {
		var result groups.ConsumerResult
		err = c.onGroup(ctx, request.Group, useGroup, named, false, func(caller groups.Caller) (err error) {
			heartbeat.Caller = caller
			result, err = c.coordinator().ConsumerHeartbeat(ctx, c.group(request.Group), heartbeat)
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		response.MemberID, response.MemberEpoch = text(result.MemberID), result.Epoch
		response.HeartbeatIntervalMillis = int32(result.HeartbeatInterval.Milliseconds()) //nolint:gosec // seconds
		if result.HasAssignment {
			response.Assignment = c.assignment(result.Assignment)
		}
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		response.MemberID, response.MemberEpoch = nil, 0
	}
	return nil
}

// authorizeSubscription returns the topics that a request names. It returns an error unless the caller may use
// some group of that name and consume all of the topics.
func (c *call) authorizeSubscription(ctx context.Context, request *kmsg.ConsumerGroupHeartbeatRequest) (
	topics []names.Topic, err error,
) {
	if n := len(request.SubscribedTopicNames); n > maxTopics {
		return nil, fmt.Errorf("%w: subscription lists %d topics, at most %d are allowed", errInvalid, n, maxTopics)
	}
	if err := c.authorizeCoordinator(ctx, request.Group); err != nil {
		return nil, err
	}
	ctx = access.WithBudget(ctx)
	of := access.Consumers{Scope: c.groupScopeOf(request.Group)}
	for _, name := range request.SubscribedTopicNames {
		topic, err := c.subscribedName(ctx, name, request.Group)
		if errors.Is(err, messaging.ErrName) {
			continue // such a topic cannot exist
		}
		if err != nil {
			return nil, err
		}
		if !c.mayConsume(ctx, topic, request.Group) {
			c.auditDenied(permitConsume, of.TopicScope(topic))
			return nil, errTopicDenied
		}
		topics = append(topics, topic)
	}
	return topics, nil
}

func (c *call) consumerRequest(ctx context.Context,
	request *kmsg.ConsumerGroupHeartbeatRequest,
) (*groups.ConsumerRequest, error) {
	for name, value := range map[string]*string{"instance id": request.InstanceID, "rack": request.RackID} {
		if value != nil && *value == "" {
			return nil, fmt.Errorf("%w: %s is empty; omit it", errInvalid, name)
		}
	}
	if request.ServerAssignor != nil && *request.ServerAssignor == "" {
		return nil, fmt.Errorf("%w: it is empty; omit it", groups.ErrAssignor)
	}
	topics := &callTopics{ctx: ctx, call: c, group: request.Group}
	heartbeat := &groups.ConsumerRequest{
		MemberID: request.MemberID, InstanceID: deref(request.InstanceID), Epoch: request.MemberEpoch,
		ClientID: c.client, ClientHost: "/" + c.conn.address,
		Rack:             deref(request.RackID),
		RebalanceTimeout: time.Duration(request.RebalanceTimeoutMillis) * time.Millisecond,
		Names:            request.SubscribedTopicNames, Pattern: request.SubscribedTopicRegex,
		Assignor: deref(request.ServerAssignor),
		Topics:   topics, Classic: topics,
	}
	if c.version == 0 && heartbeat.MemberID == "" && heartbeat.Epoch == 0 {
		heartbeat.MemberID = rand.Text() // from version 1 on clients generate it
	}
	if request.Topics != nil {
		heartbeat.Owned = []groups.Partition{}
	}
	for i := range request.Topics {
		number, ok := c.session.cluster.topicNumber(request.Topics[i].TopicID)
		if !ok {
			number = 0 // topic of another cluster, so never assigned
		}
		for _, p := range request.Topics[i].Partitions {
			heartbeat.Owned = append(heartbeat.Owned, groups.Partition{Topic: engine.TopicID(number), Partition: p})
		}
	}
	return heartbeat, nil
}

func (c *call) assignment(parts []groups.Partition) *kmsg.ConsumerGroupHeartbeatResponseAssignment {
	assignment := &kmsg.ConsumerGroupHeartbeatResponseAssignment{
		Topics: []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{},
	}
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			row := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			row.TopicID = c.session.cluster.topicID(uint64(p.Topic))
			assignment.Topics = append(assignment.Topics, row)
		}
		row := &assignment.Topics[len(assignment.Topics)-1]
		row.Partitions = append(row.Partitions, p.Partition)
	}
	return assignment
}

// callTopics implements groups.Topics with the topics that a caller may consume in a group.
type callTopics struct {
	ctx   context.Context //nolint:containedctx // context of the call
	call  *call
	group string
}

// Revision implements groups.Topics.
func (t *callTopics) Revision() uint64 { return t.call.session.cluster.Topics.TopicsRevision() }

// Partitions implements groups.Topics.
func (t *callTopics) Partitions(topic engine.TopicID) int32 {
	return t.call.session.cluster.Topics.PartitionsOf(topic)
}

// Resolve implements groups.Topics. A pattern is matched against the names in a list of all topics.
func (t *callTopics) Resolve(subscribed []string, pattern *regexp.Regexp) (found groups.Resolved, err error) {
	c := t.call
	for _, clientName := range subscribed {
		name, err := c.subscribedName(t.ctx, clientName, t.group)
		if errors.Is(err, messaging.ErrName) {
			continue
		}
		if err != nil {
			return groups.Resolved{}, err
		}
		found.Reads = append(found.Reads, name)
		if !c.mayConsume(t.ctx, name, t.group) {
			continue
		}
		topic, err := c.session.cluster.Topics.KafkaTopic(t.ctx, name)
		if code, _ := codeOf(err); code == codeUnknownTopic || code == codeInvalidTopic {
			continue
		}
		if err != nil {
			return groups.Resolved{}, err
		}
		found.Topics = append(found.Topics, engine.TopicID(topic.ID()))
	}
	if pattern == nil {
		return found, nil
	}
	listed, err := c.visibleTopics(t.ctx)
	if err != nil {
		return groups.Resolved{}, err
	}
	for _, topic := range listed {
		if pattern.MatchString(c.displayName(topic.Name())) && c.mayConsume(t.ctx, topic.Name(), t.group) {
			found.Topics = append(found.Topics, engine.TopicID(topic.ID()))
			found.Reads = append(found.Reads, topic.Name())
		}
	}
	return found, nil
}
