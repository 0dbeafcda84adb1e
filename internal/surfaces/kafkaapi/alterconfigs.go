package kafkaapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
)

// errReadOnly means that the configurations of a resource cannot be changed.
var errReadOnly = errors.New("configuration of brokers cannot be changed over the Kafka protocol, and that of groups " +
	"only with IncrementalAlterConfigs; change the server's configuration file or the policies of namespaces")

// resource is a resource with configurations.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

// configChange changes the configurations of a resource.
type configChange struct {
	topic func(*messaging.KafkaTopic) error
	group func() error
}

// changeConfig changes the configurations of a topic or a group if the caller has the permission.
func (c *call) changeConfig(ctx context.Context, at resource, dryRun bool, change configChange) error {
	switch at.kind {
	case kmsg.ConfigResourceTypeTopic:
	case kmsg.ConfigResourceTypeGroupConfig:
		return change.group()
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		return errReadOnly
	default:
		return unknownResource(at.kind)
	}
	topic, err := c.topic(ctx, at.name, permitUpdate)
	if err != nil {
		return err
	}
	err = change.topic(topic)
	if !dryRun {
		c.auditAllowed(permitUpdate, topic.Name().String(), err)
	}
	return err
}

// changeConfigs applies change to each resource of a request and passes its result to respond.
func changeConfigs[T any](ctx context.Context, c *call, requested []T, id func(*T) resource, dryRun bool,
	change func(*T) configChange, respond func(at resource, failed code, message *string),
) {
	limit := checkRequestSize(len(requested), 0)
	seen := countOccurrences(requested, id)
	for i := range requested {
		at := id(&requested[i])
		err := errors.Join(limit, seen.checkOnce(at, at.name))
		if err == nil {
			err = c.changeConfig(ctx, at, dryRun, change(&requested[i]))
		}
		failed, message := c.errorResponse(err)
		respond(at, failed, message)
	}
}

// alterConfigs replaces all configurations of topics.
func alterConfigs(ctx context.Context, c *call, request *kmsg.AlterConfigsRequest,
	response *kmsg.AlterConfigsResponse,
) error {
	id := func(r *kmsg.AlterConfigsRequestResource) resource { return resource{r.ResourceType, r.ResourceName} }
	replace := func(topic *messaging.KafkaTopic, requested *kmsg.AlterConfigsRequestResource) error {
		config := make(map[string]string, len(requested.Configs))
		for _, entry := range requested.Configs {
			if _, twice := config[entry.Name]; twice || entry.Value == nil {
				return fmt.Errorf("%w: %s needs exactly one value", errInvalid, entry.Name)
			}
			config[entry.Name] = *entry.Value
		}
		return topic.ReplaceConfig(ctx, config, request.ValidateOnly)
	}
	change := func(requested *kmsg.AlterConfigsRequestResource) configChange {
		return configChange{
			topic: func(topic *messaging.KafkaTopic) error { return replace(topic, requested) },
			group: func() error { return errReadOnly },
		}
	}
	changeConfigs(ctx, c, request.Resources, id, request.ValidateOnly, change,
		func(at resource, failed code, message *string) {
			row := kmsg.NewAlterConfigsResponseResource()
			row.ResourceType, row.ResourceName, row.ErrorCode, row.ErrorMessage = at.kind, at.name, failed, message
			response.Resources = append(response.Resources, row)
		})
	return nil
}

// incrementalAlterConfigs changes single configurations of topics and groups.
func incrementalAlterConfigs(ctx context.Context, c *call, request *kmsg.IncrementalAlterConfigsRequest,
	response *kmsg.IncrementalAlterConfigsResponse,
) error {
	id := func(r *kmsg.IncrementalAlterConfigsRequestResource) resource {
		return resource{r.ResourceType, r.ResourceName}
	}
	alter := func(requested *kmsg.IncrementalAlterConfigsRequestResource) configChange {
		changes, err := configChanges(requested.Configs)
		return configChange{
			topic: func(topic *messaging.KafkaTopic) error {
				if err != nil {
					return err
				}
				return topic.AlterConfig(ctx, changes, request.ValidateOnly)
			},
			group: func() error {
				if err != nil {
					changes = nil // authorization comes first
				}
				dryRun := request.ValidateOnly || err != nil
				return cmp.Or(c.alterGroupConfig(ctx, requested.ResourceName, changes, dryRun), err)
			},
		}
	}
	changeConfigs(ctx, c, request.Resources, id, request.ValidateOnly, alter,
		func(at resource, failed code, message *string) {
			row := kmsg.NewIncrementalAlterConfigsResponseResource()
			row.ResourceType, row.ResourceName, row.ErrorCode, row.ErrorMessage = at.kind, at.name, failed, message
			response.Resources = append(response.Resources, row)
		})
	return nil
}

func configChanges(requested []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]messaging.ConfigChange, error) {
	changes := make([]messaging.ConfigChange, 0, len(requested))
	seen := make(map[string]bool, len(requested))
	for _, entry := range requested {
		if seen[entry.Name] {
			return nil, fmt.Errorf("%w: %s occurs twice", errInvalid, entry.Name)
		}
		seen[entry.Name] = true
		if entry.Op < kmsg.IncrementalAlterConfigOpSet || entry.Op > kmsg.IncrementalAlterConfigOpSubtract {
			return nil, fmt.Errorf("%w: %s: operation %d is not set, delete, append or subtract", errInvalid,
				entry.Name, entry.Op)
		}
		if entry.Value == nil && entry.Op != kmsg.IncrementalAlterConfigOpDelete {
			return nil, fmt.Errorf("%w: %s needs a value", errInvalid, entry.Name)
		}
		op := messaging.ConfigOp(entry.Op) //nolint:gosec // checked above
		changes = append(changes, messaging.ConfigChange{Name: entry.Name, Op: op, Value: deref(entry.Value)})
	}
	return changes, nil
}
