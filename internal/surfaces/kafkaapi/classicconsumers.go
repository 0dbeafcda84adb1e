package kafkaapi

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// The coordinator does not look into what classic members send each other, except when members with both
// protocols are in one group. Then consumers must use Kafka's own format, and topic names are those of the
// connection that makes the request.

var errClassicMetadata = errors.New("metadata of a consumer is malformed")

// Subscription implements groups.ClassicCodec.
func (t *callTopics) Subscription(metadata []byte, own bool) (groups.ClassicSubscription, error) {
	var decoded kmsg.ConsumerMemberMetadata
	if err := decoded.ReadFrom(metadata); err != nil {
		return groups.ClassicSubscription{}, fmt.Errorf("%w: %w", errClassicMetadata, err)
	}
	found := groups.ClassicSubscription{Names: decoded.Topics, Rack: deref(decoded.Rack)}
	for _, name := range decoded.Topics {
		id, ok, err := t.topicNamed(name)
		if err != nil {
			return groups.ClassicSubscription{}, err
		}
		if ok && (!own || t.mayConsume(id)) {
			found.Topics = append(found.Topics, id)
		}
	}
	for _, owned := range decoded.OwnedPartitions {
		parts, err := t.partitionsNamed(owned.Topic, owned.Partitions)
		if err != nil {
			return groups.ClassicSubscription{}, err
		}
		found.Owned = append(found.Owned, parts...)
	}
	return found, nil
}

// Assignment implements groups.ClassicCodec.
func (t *callTopics) Assignment(assignment []byte) ([]groups.Partition, error) {
	if len(assignment) == 0 {
		return nil, nil
	}
	var decoded kmsg.ConsumerMemberAssignment
	if err := decoded.ReadFrom(assignment); err != nil {
		return nil, fmt.Errorf("%w: %w", errClassicMetadata, err)
	}
	var all []groups.Partition
	for _, row := range decoded.Topics {
		parts, err := t.partitionsNamed(row.Topic, row.Partitions)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	return all, nil
}

// partitionsNamed returns partitions of a topic by name; none if the topic does not exist.
func (t *callTopics) partitionsNamed(clientName string, partitions []int32) (all []groups.Partition, err error) {
	id, ok, err := t.topicNamed(clientName)
	if err != nil || !ok {
		return nil, err
	}
	for _, p := range partitions {
		all = append(all, groups.Partition{Topic: id, Partition: p})
	}
	return all, nil
}

// topicNamed looks a topic up, also one that the caller may not describe; ok is false if it does not exist.
func (t *callTopics) topicNamed(clientName string) (id engine.TopicID, ok bool, err error) {
	name, err := t.call.topicName(t.ctx, clientName)
	var topic *messaging.KafkaTopic
	if err == nil {
		topic, err = t.call.session.cluster.Topics.KafkaTopic(t.ctx, name)
	}
	if err != nil {
		if code, _ := codeOf(err); code == codeUnknownTopic || code == codeInvalidTopic {
			return 0, false, nil
		}
		return 0, false, err
	}
	return engine.TopicID(topic.ID()), true, nil
}

// mayConsume reports whether the caller may consume a topic in the group.
func (t *callTopics) mayConsume(id engine.TopicID) bool {
	topic, err := t.call.session.cluster.Topics.KafkaTopicByID(t.ctx, uint64(id))
	return err == nil && t.call.mayConsume(t.ctx, topic.Name(), t.group)
}

// encodeAssignment encodes the assignment of a classic member in the version of its metadata. Topics have the
// names by which the member subscribes to them.
func (t *callTopics) encodeAssignment(of *groups.ClassicAssignment) ([]byte, error) {
	var subscribed kmsg.ConsumerMemberMetadata
	if err := subscribed.ReadFrom(of.Metadata); err != nil {
		return nil, fmt.Errorf("%w: %w", errClassicMetadata, err)
	}
	names := make(map[engine.TopicID]string)
	for _, name := range subscribed.Topics {
		id, ok, err := t.topicNamed(name)
		if err != nil {
			return nil, err
		}
		if ok {
			names[id] = name
		}
	}
	out := kmsg.ConsumerMemberAssignment{Version: subscribed.Version}
	for i, p := range of.Partitions {
		name, ok := names[p.Topic]
		if !ok {
			continue // the topic was deleted
		}
		if i == 0 || p.Topic != of.Partitions[i-1].Topic {
			out.Topics = append(out.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: name})
		}
		row := &out.Topics[len(out.Topics)-1]
		row.Partitions = append(row.Partitions, p.Partition)
	}
	return out.AppendTo(nil), nil
}
