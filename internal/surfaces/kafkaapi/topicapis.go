package kafkaapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
)

func createTopics(ctx context.Context, c *call, request *kmsg.CreateTopicsRequest,
	response *kmsg.CreateTopicsResponse,
) error {
	limit := checkRequestSize(len(request.Topics), 0)
	seen := countOccurrences(request.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	for i := range request.Topics {
		requested := &request.Topics[i]
		if !seen.isFirst(requested.Topic) {
			continue
		}
		row := kmsg.NewCreateTopicsResponseTopic()
		row.Topic, row.NumPartitions, row.ReplicationFactor = requested.Topic, -1, -1
		var topic *messaging.KafkaTopic
		err := cmp.Or(limit, seen.checkOnce(requested.Topic, "topic "+requested.Topic))
		if err == nil {
			topic, err = c.createTopic(ctx, requested, request.ValidateOnly)
		}
		row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
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
func (c *call) createTopic(ctx context.Context, requested *kmsg.CreateTopicsRequestTopic,
	dryRun bool,
) (*messaging.KafkaTopic, error) {
	name, err := c.topicName(ctx, requested.Topic)
	if err == nil && !names.IsKafkaTopic(requested.Topic) {
		err = fmt.Errorf("%w: %q", messaging.ErrName, cut(requested.Topic, maxTopicName))
	}
	if err == nil {
		name, err = c.creatable(ctx, requested.Topic, name)
	}
	if err != nil {
		return nil, err
	}
	config := make(map[string]string)
	for i := range requested.Configs {
		if requested.Configs[i].Value == nil {
			return nil, fmt.Errorf("%w: %s needs a value; omit it for the default", messaging.ErrConfig,
				requested.Configs[i].Name)
		}
		config[requested.Configs[i].Name] = *requested.Configs[i].Value
	}
	partitions := requested.NumPartitions
	switch {
	case len(requested.ReplicaAssignment) > 0:
		partitions = int32(min(len(requested.ReplicaAssignment), 1<<20)) //nolint:gosec // bounded
	case partitions == -1:
		partitions = 0
	case partitions < 1:
		return nil, fmt.Errorf("%w: %d", messaging.ErrPartitionCount, partitions)
	}
	topic, err := c.session.cluster.Topics.CreateKafkaTopic(ctx, name, partitions, config, dryRun)
	if !dryRun {
		c.auditAllowed(permitCreate, name.String(), err)
	}
	return topic, err
}

func createdConfigs(topic *messaging.KafkaTopic) []kmsg.CreateTopicsResponseTopicConfig {
	var rows []kmsg.CreateTopicsResponseTopicConfig
	for _, config := range topic.Configs() {
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
	requested := request.Topics
	if c.version < 6 {
		requested = nil
		for _, name := range request.TopicNames {
			requested = append(requested, kmsg.DeleteTopicsRequestTopic{Topic: text(name)})
		}
	}
	limit := checkRequestSize(len(requested), 0)
	id := func(t *kmsg.DeleteTopicsRequestTopic) topicKey { return topicKey{deref(t.Topic), t.TopicID} }
	seen := countOccurrences(requested, id)
	for i := range requested {
		if !seen.isFirst(id(&requested[i])) {
			continue
		}
		row := kmsg.NewDeleteTopicsResponseTopic()
		row.Topic, row.TopicID = requested[i].Topic, requested[i].TopicID
		var topic *messaging.KafkaTopic
		err := cmp.Or(limit, seen.checkOnce(id(&requested[i]), "topic "+deref(requested[i].Topic)))
		if err == nil {
			topic, err = c.topicToDelete(ctx, &requested[i])
		}
		if err == nil {
			if row.Topic == nil { // before the deletion, after which the name may resolve to another topic
				row.Topic = text(c.displayName(topic.Name()))
			}
			row.TopicID = c.session.cluster.topicID(topic.ID())
			err = topic.Delete(ctx)
			if errors.Is(err, messaging.ErrNoTopic) && requested[i].Topic == nil {
				err = errTopicID // another caller deleted it first
			}
			c.auditAllowed(permitDelete, topic.Name().String(), err)
		}
		row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// topicToDelete looks up a topic to delete, by its name or id.
func (c *call) topicToDelete(ctx context.Context,
	requested *kmsg.DeleteTopicsRequestTopic,
) (*messaging.KafkaTopic, error) {
	if (requested.Topic != nil) == (requested.TopicID != noTopicID) {
		return nil, fmt.Errorf("%w: send either the topic's name or its id", errInvalid)
	}
	return c.topicBy(ctx, deref(requested.Topic), requested.TopicID, permitDelete)
}

// auditAllowed writes an administrative call to the audit log.
func (c *call) auditAllowed(permission access.Permission, scope string, err error) {
	status := 200
	if err != nil {
		status = 400
	}
	rec := c.auditRecord(permission, scope)
	rec.Decision, rec.Status = audit.Allowed, status
	c.conn.server.opts.Auditor.Record(rec)
}

// auditDenied writes a denied permission to the audit log.
func (c *call) auditDenied(permission access.Permission, scope access.Scope) {
	if c.unaudited {
		return
	}
	rec := c.auditRecord(permission, scope.String())
	rec.Decision, rec.Status = audit.Denied, 403
	c.conn.server.opts.Auditor.Record(rec)
}
