package kafkaapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
)

func createTopics(ctx context.Context, c *call, request *kmsg.CreateTopicsRequest,
	response *kmsg.CreateTopicsResponse,
) error {
	limit := within(len(request.Topics), 0)
	seen := make(map[string]int)
	for i := range request.Topics {
		seen[request.Topics[i].Topic]++
	}
	for i := range request.Topics {
		asked := &request.Topics[i]
		row := kmsg.NewCreateTopicsResponseTopic()
		row.Topic, row.NumPartitions, row.ReplicationFactor = asked.Topic, -1, -1
		var topic *messaging.StreamTopic
		err := limit
		if err == nil && seen[asked.Topic] > 1 {
			err = fmt.Errorf("%w: topic %s occurs twice", errInvalid, asked.Topic)
		}
		if err == nil {
			topic, err = c.createTopic(ctx, asked, request.ValidateOnly)
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.fail(err)
		}
		if topic != nil {
			row.TopicID, row.NumPartitions, row.ReplicationFactor = c.session.cluster.topicID(topic.ID()),
				topic.Partitions(), 1
			row.Configs = createdConfigs(topic)
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// createTopic creates one topic. Replication factor and replica assignments are accepted and
// ignored, because a partition has one replica.
func (c *call) createTopic(ctx context.Context, asked *kmsg.CreateTopicsRequestTopic,
	dryRun bool,
) (*messaging.StreamTopic, error) {
	name, err := c.topicName(ctx, asked.Topic)
	if err == nil && !legal(asked.Topic) {
		err = fmt.Errorf("%w: %q", messaging.ErrName, cut(asked.Topic, maxTopicName))
	}
	if err != nil {
		return nil, err
	}
	if err := c.mayTopic(ctx, name, permitCreate); err != nil {
		return nil, err
	}
	config := make(map[string]string)
	for i := range asked.Configs {
		if asked.Configs[i].Value == nil {
			return nil, fmt.Errorf("%w: %s needs a value; omit it for the default", messaging.ErrConfig,
				asked.Configs[i].Name)
		}
		config[asked.Configs[i].Name] = *asked.Configs[i].Value
	}
	partitions := asked.NumPartitions
	switch {
	case len(asked.ReplicaAssignment) > 0:
		partitions = int32(min(len(asked.ReplicaAssignment), 1<<20)) //nolint:gosec // bounded
	case partitions == -1:
		partitions = 0
	case partitions < 1:
		return nil, fmt.Errorf("%w: %d", messaging.ErrPartitionCount, partitions)
	}
	topic, err := c.session.cluster.Broker.CreateStreamTopic(ctx, name, partitions, config, dryRun)
	if !dryRun {
		c.record(permitCreate, name.String(), err)
	}
	return topic, err
}

func createdConfigs(topic *messaging.StreamTopic) []kmsg.CreateTopicsResponseTopicConfig {
	var rows []kmsg.CreateTopicsResponseTopicConfig
	for _, config := range topic.StreamConfigs() {
		row := kmsg.NewCreateTopicsResponseTopicConfig()
		row.Name, row.Value, row.ReadOnly, row.Source = config.Name, text(config.Value), config.ReadOnly,
			int8(configSource(&config))
		rows = append(rows, row)
	}
	return rows
}

func deleteTopics(ctx context.Context, c *call, request *kmsg.DeleteTopicsRequest,
	response *kmsg.DeleteTopicsResponse,
) error {
	asked := request.Topics
	if c.version < 6 {
		asked = nil
		for _, name := range request.TopicNames {
			asked = append(asked, kmsg.DeleteTopicsRequestTopic{Topic: text(name)})
		}
	}
	limit := within(len(asked), 0)
	for i := range asked {
		row := kmsg.NewDeleteTopicsResponseTopic()
		row.Topic, row.TopicID = asked[i].Topic, asked[i].TopicID
		var topic *messaging.StreamTopic
		err := limit
		if err == nil {
			topic, err = c.deletedTopic(ctx, &asked[i])
		}
		if err == nil {
			if row.Topic == nil { // before the deletion, after which the name may resolve to another topic
				row.Topic = text(c.printed(topic.Name()))
			}
			err = topic.Delete(ctx)
			if errors.Is(err, messaging.ErrNoTopic) && asked[i].Topic == nil {
				err = errTopicID // another caller deleted it first
			}
			c.record(permitDelete, topic.Name().String(), err)
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.fail(err)
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// deletedTopic looks up a topic to delete, by its name or id.
func (c *call) deletedTopic(ctx context.Context, asked *kmsg.DeleteTopicsRequestTopic) (*messaging.StreamTopic, error) {
	if asked.Topic != nil && asked.TopicID != [16]byte{} {
		return nil, fmt.Errorf("%w: send the topic's name or its id, not both", errInvalid)
	}
	return c.topicBy(ctx, deref(asked.Topic), asked.TopicID, permitDelete)
}

// record writes an administrative call to the audit log.
func (c *call) record(permission access.Permission, scope string, err error) {
	status := 200
	if err != nil {
		status = 400
	}
	rec := c.auditRecord(permission, scope)
	rec.Decision, rec.Status = audit.Allowed, status
	c.conn.server.opts.Auditor.Record(rec)
}

// denied writes a denied permission to the audit log.
func (c *call) denied(permission access.Permission, scope access.Scope) {
	if c.unaudited {
		return
	}
	rec := c.auditRecord(permission, scope.String())
	rec.Decision, rec.Status = audit.Denied, 403
	c.conn.server.opts.Auditor.Record(rec)
}
