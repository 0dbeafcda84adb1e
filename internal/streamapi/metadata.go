package streamapi

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/messaging"
	"freshet/internal/names"
)

// onlyReplica is where each partition is. Nobody changes it.
var onlyReplica = []int32{nodeID}

func metadata(ctx context.Context, c *call, request *kmsg.MetadataRequest, response *kmsg.MetadataResponse) error {
	host, port := c.conn.advertised()
	response.Brokers = []kmsg.MetadataResponseBroker{{NodeID: nodeID, Host: host, Port: port, Rack: c.rack()}}
	response.ClusterID, response.ControllerID = text(c.session.cluster.clusterID()), nodeID
	response.AuthorizedOperations = notAsked
	if request.IncludeClusterAuthorizedOperations {
		response.AuthorizedOperations = c.operationsOnCluster()
	}
	if request.Topics == nil || c.version == 0 && len(request.Topics) == 0 {
		return c.allTopics(ctx, request, response)
	}
	limit := within(len(request.Topics), 0)
	for i := range request.Topics {
		asked := &request.Topics[i]
		said := deref(asked.Topic)
		var topic *messaging.StreamTopic
		err := limit
		if err == nil {
			topic, err = c.topicBy(ctx, said, asked.TopicID, describing...)
		}
		if errors.Is(err, messaging.ErrNoTopic) && request.AllowAutoTopicCreation {
			topic, err = c.autoCreate(ctx, said, err)
		}
		row := kmsg.NewMetadataResponseTopic()
		row.Topic, row.TopicID = asked.Topic, asked.TopicID
		row.AuthorizedOperations = notAsked
		if row.ErrorCode = c.codeOf(err); err == nil {
			c.describeTopic(ctx, request, &row, topic)
			if said == "" { // it was asked for by its id
				row.Topic = text(c.printed(topic.Name()))
			}
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// autoCreate makes a topic that a client asks for, where the namespace lets it.
func (c *call) autoCreate(ctx context.Context, said string, missing error) (*messaging.StreamTopic, error) {
	name, err := c.topicName(ctx, said)
	if err != nil {
		return nil, err
	}
	broker := c.session.cluster.Broker
	if !legal(said) || !broker.MayCreateTopics(name.Namespace) || c.mayTopic(ctx, name, permitCreate) != nil {
		return nil, missing
	}
	topic, err := broker.CreateStreamTopic(ctx, name, 0, nil, false)
	if errors.Is(err, messaging.ErrTopicExists) { // somebody was faster
		return broker.StreamTopic(ctx, name)
	}
	return topic, err
}

// allTopics lists what the caller may see of the default namespace.
func (c *call) allTopics(ctx context.Context, request *kmsg.MetadataRequest, response *kmsg.MetadataResponse) error {
	topics, err := c.listed(ctx)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		row := kmsg.NewMetadataResponseTopic()
		row.Topic, row.AuthorizedOperations = text(c.printed(topic.Name())), notAsked
		c.describeTopic(ctx, request, &row, topic)
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// sees says whether a topic is listed for the caller; being left out of a list is
// no denial.
func (c *call) sees(ctx context.Context, name names.Topic) bool {
	quiet := *c
	quiet.unaudited = true
	return quiet.mayTopic(ctx, name, describing...) == nil
}

func (c *call) describeTopic(ctx context.Context, request *kmsg.MetadataRequest, row *kmsg.MetadataResponseTopic, topic *messaging.StreamTopic) {
	row.TopicID = c.session.cluster.topicID(topic.ID())
	row.IsInternal = topic.Name().Internal()
	if request.IncludeTopicAuthorizedOperations {
		row.AuthorizedOperations = c.operationsOnTopic(ctx, topic.Name())
	}
	row.Partitions = make([]kmsg.MetadataResponseTopicPartition, 0, topic.Partitions())
	for i := range topic.Partitions() {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = i, nodeID, 0
		p.Replicas, p.ISR = onlyReplica, onlyReplica
		row.Partitions = append(row.Partitions, p)
	}
}

func describeCluster(_ context.Context, c *call, request *kmsg.DescribeClusterRequest, response *kmsg.DescribeClusterResponse) error {
	host, port := c.conn.advertised()
	broker := kmsg.NewDescribeClusterResponseBroker()
	broker.NodeID, broker.Host, broker.Port, broker.Rack = nodeID, host, port, c.rack()
	response.Brokers = []kmsg.DescribeClusterResponseBroker{broker}
	response.ClusterID, response.ControllerID = c.session.cluster.clusterID(), nodeID
	response.ClusterAuthorizedOperations = notAsked
	if request.IncludeClusterAuthorizedOperations {
		response.ClusterAuthorizedOperations = c.operationsOnCluster()
	}
	response.EndpointType = 1
	return nil
}
