package kafkaapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

// minCreationVersion is the first version of Metadata in which clients decide whether missing topics are
// created. Older versions always request it.
const minCreationVersion = 4

// minTopicIDVersion is the first version of Metadata that supports topic ids in requests. Versions 10
// and 11 have the field, but Kafka rejects requests that set it.
const minTopicIDVersion = 12

func metadata(ctx context.Context, c *call, request *kmsg.MetadataRequest, response *kmsg.MetadataResponse) error {
	for _, node := range c.nodes() {
		response.Brokers = append(response.Brokers,
			kmsg.MetadataResponseBroker{NodeID: node.ID, Host: node.Host, Port: node.Port, Rack: c.rack()})
	}
	response.ClusterID, response.ControllerID = text(c.session.cluster.clusterID()), c.self()
	response.AuthorizedOperations = operationsNotRequested
	if request.IncludeClusterAuthorizedOperations {
		response.AuthorizedOperations = c.operationsOnCluster()
	}
	if request.Topics == nil || c.version == 0 && len(request.Topics) == 0 {
		return c.allTopics(ctx, request, response)
	}
	create := request.AllowAutoTopicCreation || c.version < minCreationVersion
	limit := checkRequestSize(len(request.Topics), 0)
	id := func(t *kmsg.MetadataRequestTopic) topicKey { return topicKey{deref(t.Topic), t.TopicID} }
	topics := request.Topics[:min(len(request.Topics), maxTopics)] // the rest of a larger request has no rows
	seen := countOccurrences(topics, id)
	for i := range topics {
		requested := &topics[i]
		if !seen.isFirst(id(requested)) {
			continue
		}
		clientName := deref(requested.Topic)
		var topic *messaging.KafkaTopic
		byID := requested.TopicID != [16]byte{}
		err := limit
		if err == nil && (byID || requested.Topic == nil) && c.version < minTopicIDVersion {
			err = fmt.Errorf("%w: topic ids require Metadata version %d", errInvalid, minTopicIDVersion)
		}
		if err == nil {
			topic, err = c.topicBy(ctx, clientName, requested.TopicID, describePermissions...)
		}
		if errors.Is(err, messaging.ErrNoTopic) && create {
			topic, err = c.autoCreate(ctx, clientName, err)
		}
		row := kmsg.NewMetadataResponseTopic()
		row.Topic, row.TopicID = requested.Topic, requested.TopicID
		if len(clientName) > maxClientTopicName {
			row.Topic = nil // not repeated, because it cannot be the name of a topic
		}
		if byID && c.version >= minTopicIDVersion {
			row.Topic = nil // as in Kafka the id decides; the name may belong to another topic
		}
		row.AuthorizedOperations = operationsNotRequested
		if row.ErrorCode = c.codeOf(err); err == nil {
			c.describeTopic(ctx, request, &row, topic)
			if byID {
				row.Topic = text(c.displayName(topic.Name()))
			}
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// autoCreate creates a missing topic of a request if the namespace and the caller's permissions
// allow it.
func (c *call) autoCreate(ctx context.Context, clientName string, missing error) (*messaging.KafkaTopic, error) {
	name, err := c.topicName(ctx, clientName)
	if err != nil {
		return nil, err
	}
	auto := c.session.cluster.Namespaces.AutoCreatesTopics
	if !names.IsKafkaTopic(clientName) || !auto(name.Namespace) && !auto(c.session.namespace) {
		return nil, missing
	}
	name, err = c.creatable(ctx, clientName, name)
	if err != nil || !auto(name.Namespace) {
		return nil, missing
	}
	topic, err := c.session.cluster.Topics.CreateKafkaTopic(ctx, name, 0, nil, false)
	if errors.Is(err, messaging.ErrTopicExists) { // another caller created it first
		return c.session.cluster.Topics.KafkaTopic(ctx, name)
	}
	return topic, err
}

// allTopics lists all topics that the caller may see, see visibleTopics.
func (c *call) allTopics(ctx context.Context, request *kmsg.MetadataRequest, response *kmsg.MetadataResponse) error {
	topics, err := c.visibleTopics(ctx)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		row := kmsg.NewMetadataResponseTopic()
		row.Topic, row.AuthorizedOperations = text(c.displayName(topic.Name())), operationsNotRequested
		c.describeTopic(ctx, request, &row, topic)
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// canDescribe reports whether the caller may describe a topic. It does not audit a denial.
func (c *call) canDescribe(ctx context.Context, name names.Topic) bool {
	quiet := *c
	quiet.unaudited = true
	return quiet.authorizeTopic(ctx, name, describePermissions...) == nil
}

func (c *call) describeTopic(ctx context.Context, request *kmsg.MetadataRequest, row *kmsg.MetadataResponseTopic,
	topic *messaging.KafkaTopic,
) {
	row.TopicID = c.session.cluster.topicID(topic.ID())
	row.IsInternal = topic.Name().Internal()
	if request.IncludeTopicAuthorizedOperations {
		row.AuthorizedOperations = c.operationsOnTopic(ctx, topic.Name())
	}
	row.Partitions = make([]kmsg.MetadataResponseTopicPartition, 0, topic.Partitions())
	leader, epoch := c.leader(topic)
	at := replicas(leader)
	for i := range topic.Partitions() {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = i, leader, epoch
		p.Replicas, p.ISR = at, at
		if leader < 0 {
			p.ErrorCode = codeNoLeader
		}
		row.Partitions = append(row.Partitions, p)
	}
}

// Types of endpoints that clients can describe.
const (
	endpointTypeBroker     = 1
	endpointTypeController = 2
)

func describeCluster(_ context.Context, c *call, request *kmsg.DescribeClusterRequest,
	response *kmsg.DescribeClusterResponse,
) error {
	switch request.EndpointType {
	case endpointTypeBroker:
	case endpointTypeController:
		response.ErrorCode, response.ErrorMessage = codeWrongEndpoint, text("controllers are not available to clients")
		return nil
	default:
		response.ErrorCode, response.ErrorMessage = codeUnknownEndpoint, text("endpoint type is unknown")
		return nil
	}
	for _, node := range c.nodes() {
		broker := kmsg.NewDescribeClusterResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack = node.ID, node.Host, node.Port, c.rack()
		response.Brokers = append(response.Brokers, broker)
	}
	response.ClusterID, response.ControllerID = c.session.cluster.clusterID(), c.self()
	response.ClusterAuthorizedOperations = operationsNotRequested
	if request.IncludeClusterAuthorizedOperations {
		response.ClusterAuthorizedOperations = c.operationsOnCluster()
	}
	response.EndpointType = endpointTypeBroker
	return nil
}
