package kafkaapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

// createPartitions adds partitions to topics. Replica assignments are accepted and ignored, because
// a partition has one replica.
func createPartitions(ctx context.Context, c *call, request *kmsg.CreatePartitionsRequest,
	response *kmsg.CreatePartitionsResponse,
) error {
	limit := checkRequestSize(len(request.Topics), 0)
	seen := countOccurrences(request.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	for i := range request.Topics {
		requested := &request.Topics[i]
		if !seen.isFirst(requested.Topic) {
			continue
		}
		row := kmsg.NewCreatePartitionsResponseTopic()
		row.Topic = requested.Topic
		err := cmp.Or(limit, seen.checkOnce(requested.Topic, "topic "+requested.Topic))
		if err == nil {
			err = c.growTopic(ctx, requested, request.ValidateOnly)
		}
		row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
		response.Topics = append(response.Topics, row)
	}
	return nil
}

func (c *call) growTopic(ctx context.Context, requested *kmsg.CreatePartitionsRequestTopic, dryRun bool) error {
	topic, err := c.topic(ctx, requested.Topic, permitUpdate)
	if err != nil {
		return err
	}
	err = topic.Grow(ctx, requested.Count, dryRun)
	if !dryRun {
		c.auditAllowed(permitUpdate, topic.Name().String(), err)
	}
	return err
}

// maxPartitionsPerPage bounds the partitions in one response of describeTopicPartitions.
const maxPartitionsPerPage = 2000

// describeTopicPartitions describes topics in the order of their names, page by page.
func describeTopicPartitions(ctx context.Context, c *call, request *kmsg.DescribeTopicPartitionsRequest,
	response *kmsg.DescribeTopicPartitionsResponse,
) error {
	requested, err := c.describedNames(ctx, request)
	if err != nil {
		row := kmsg.NewDescribeTopicPartitionsResponseTopic()
		row.ErrorCode = c.codeOf(err)
		response.Topics = append(response.Topics, row)
		return nil
	}
	left := min(max(request.ResponsePartitionLimit, 1), maxPartitionsPerPage)
	for _, name := range requested {
		if left == 0 {
			response.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name}
			return nil
		}
		row := kmsg.NewDescribeTopicPartitionsResponseTopic()
		row.Topic, row.AuthorizedOperations = text(name), operationsNotRequested
		topic, err := c.topic(ctx, name, describePermissions...)
		if err != nil {
			row.ErrorCode = c.codeOf(err)
			response.Topics = append(response.Topics, row)
			continue
		}
		from := int32(0)
		if request.Cursor != nil && request.Cursor.Topic == name {
			from = request.Cursor.Partition
		}
		row.TopicID, row.IsInternal = c.session.cluster.topicID(topic.ID()), topic.Name().Internal()
		row.AuthorizedOperations = c.operationsOnTopic(ctx, topic.Name())
		for ; from < topic.Partitions() && left > 0; from++ {
			row.Partitions = append(row.Partitions, c.describedPartition(topic, from))
			left--
		}
		response.Topics = append(response.Topics, row)
		if from < topic.Partitions() {
			response.NextCursor = &kmsg.DescribeTopicPartitionsResponseNextCursor{Topic: name, Partition: from}
			return nil
		}
	}
	return nil
}

// describedNames returns the topics of a request from its cursor on: those that it names, or all
// that the caller may see.
func (c *call) describedNames(ctx context.Context, request *kmsg.DescribeTopicPartitionsRequest) ([]string, error) {
	if err := checkRequestSize(len(request.Topics), 0); err != nil {
		return nil, err
	}
	if request.Cursor != nil && request.Cursor.Partition < 0 {
		return nil, fmt.Errorf("%w: cursor has partition %d", errInvalid, request.Cursor.Partition)
	}
	var requested []string
	for i := range request.Topics {
		requested = append(requested, request.Topics[i].Topic)
	}
	if len(requested) == 0 {
		topics, err := c.visibleTopics(ctx)
		if err != nil {
			return nil, err
		}
		for _, topic := range topics {
			requested = append(requested, c.displayName(topic.Name()))
		}
	}
	slices.Sort(requested)
	requested = slices.Compact(requested)
	if request.Cursor != nil {
		at, _ := slices.BinarySearchFunc(requested, request.Cursor.Topic, strings.Compare)
		requested = requested[at:]
	}
	return requested, nil
}

func (c *call) describedPartition(topic *messaging.KafkaTopic,
	index int32,
) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	p := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	leader, epoch := c.leader(topic)
	p.Partition, p.LeaderID, p.LeaderEpoch = index, leader, epoch
	p.Replicas, p.ISR, p.OfflineReplicas = replicas(leader), replicas(leader), []int32{}
	if leader < 0 {
		p.ErrorCode = codeNoLeader
	}
	// These fields may be null, but the Java client does not expect that.
	p.EligibleLeaderReplicas, p.LastKnownELR = []int32{}, []int32{}
	return p
}

// visibleTopics returns all topics that the caller may see: those of the connection's namespace, and with
// ListAll those of other namespaces.
func (c *call) visibleTopics(ctx context.Context) ([]*messaging.KafkaTopic, error) {
	spaces := []names.Namespace{c.session.namespace}
	if c.conn.server.opts.ListAll {
		others, err := c.otherNamespaces(ctx)
		if err != nil {
			return nil, err
		}
		spaces = append(spaces, others...)
	}
	var found []*messaging.KafkaTopic
	for _, ns := range spaces {
		err := c.session.cluster.Topics.KafkaTopics(ctx, ns, func(t *messaging.KafkaTopic) bool {
			if names.IsKafkaTopic(c.displayName(t.Name())) {
				found = append(found, t)
			}
			return true
		})
		if err != nil && (ns == c.session.namespace || !errors.Is(err, messaging.ErrNoNamespace)) {
			return nil, err
		}
	}
	return slices.DeleteFunc(found, func(t *messaging.KafkaTopic) bool { return !c.canDescribe(ctx, t.Name()) }), nil
}

// otherNamespaces returns the namespaces whose topics can be addressed by a dotted name.
func (c *call) otherNamespaces(ctx context.Context) ([]names.Namespace, error) {
	namespaces := c.session.cluster.Namespaces
	tenants, err := namespaces.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	var found []names.Namespace
	for _, tenant := range tenants {
		spaces, err := namespaces.Namespaces(ctx, tenant)
		if err != nil && !errors.Is(err, messaging.ErrNoTenant) {
			return nil, err
		}
		for _, ns := range spaces {
			if ns != c.session.namespace && !strings.Contains(ns.Tenant, ".") && !strings.Contains(ns.Name, ".") {
				found = append(found, ns)
			}
		}
	}
	return found, nil
}
