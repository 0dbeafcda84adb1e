package kafkaapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
)

// errReadOnly is the answer to a change of what has no configuration to change.
var errReadOnly = errors.New("configuration of the broker and of groups cannot be changed over this protocol; it is " +
	"in the server's configuration file and in the policies of namespaces")

// resource names something that has configuration.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

// repeated says which of the resources of a request are named twice: which of the
// two should count cannot be known.
func repeated(seen map[resource]int, at resource) error {
	if seen[at] > 1 {
		return fmt.Errorf("%w: %s is named twice", errInvalid, at.name)
	}
	return nil
}

// changeConfig changes the configuration of a topic, if the caller may.
func (c *call) changeConfig(ctx context.Context, at resource, dryRun bool,
	change func(*messaging.StreamTopic) error,
) error {
	switch at.kind {
	case kmsg.ConfigResourceTypeTopic:
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeGroupConfig:
		return errReadOnly
	default:
		return unknownResource(at.kind)
	}
	topic, err := c.topic(ctx, at.name, permitUpdate)
	if err != nil {
		return err
	}
	err = change(topic)
	if !dryRun {
		c.record(permitUpdate, topic.Name().String(), err)
	}
	return err
}

// alterConfigs replaces the whole configuration of topics.
func alterConfigs(ctx context.Context, c *call, request *kmsg.AlterConfigsRequest,
	response *kmsg.AlterConfigsResponse,
) error {
	limit := within(len(request.Resources), 0)
	seen := make(map[resource]int)
	for i := range request.Resources {
		seen[resource{request.Resources[i].ResourceType, request.Resources[i].ResourceName}]++
	}
	for i := range request.Resources {
		asked := &request.Resources[i]
		at := resource{asked.ResourceType, asked.ResourceName}
		row := kmsg.NewAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = at.kind, at.name
		err := errors.Join(limit, repeated(seen, at))
		if err == nil {
			err = c.changeConfig(ctx, at, request.ValidateOnly, func(topic *messaging.StreamTopic) error {
				config := make(map[string]string, len(asked.Configs))
				for _, entry := range asked.Configs {
					if _, twice := config[entry.Name]; twice || entry.Value == nil {
						return fmt.Errorf("%w: %s needs one value", errInvalid, entry.Name)
					}
					config[entry.Name] = *entry.Value
				}
				return topic.ReplaceStreamConfig(ctx, config, request.ValidateOnly)
			})
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.fail(err)
		}
		response.Resources = append(response.Resources, row)
	}
	return nil
}

// incrementalAlterConfigs changes single entries of the configuration of topics.
func incrementalAlterConfigs(ctx context.Context, c *call, request *kmsg.IncrementalAlterConfigsRequest,
	response *kmsg.IncrementalAlterConfigsResponse,
) error {
	limit := within(len(request.Resources), 0)
	seen := make(map[resource]int)
	for i := range request.Resources {
		seen[resource{request.Resources[i].ResourceType, request.Resources[i].ResourceName}]++
	}
	for i := range request.Resources {
		asked := &request.Resources[i]
		at := resource{asked.ResourceType, asked.ResourceName}
		row := kmsg.NewIncrementalAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = at.kind, at.name
		err := errors.Join(limit, repeated(seen, at))
		if err == nil {
			err = c.changeConfig(ctx, at, request.ValidateOnly, func(topic *messaging.StreamTopic) error {
				changes, err := configChanges(asked.Configs)
				if err != nil {
					return err
				}
				return topic.AlterStreamConfig(ctx, changes, request.ValidateOnly)
			})
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.fail(err)
		}
		response.Resources = append(response.Resources, row)
	}
	return nil
}

func configChanges(asked []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]messaging.ConfigChange, error) {
	changes := make([]messaging.ConfigChange, 0, len(asked))
	seen := make(map[string]bool, len(asked))
	for _, entry := range asked {
		if seen[entry.Name] {
			return nil, fmt.Errorf("%w: %s is named twice", errInvalid, entry.Name)
		}
		seen[entry.Name] = true
		if entry.Op < kmsg.IncrementalAlterConfigOpSet || entry.Op > kmsg.IncrementalAlterConfigOpSubtract {
			return nil, fmt.Errorf("%w: %s: operation %d is none of set, delete, append and subtract", errInvalid,
				entry.Name, entry.Op)
		}
		if entry.Value == nil && entry.Op != kmsg.IncrementalAlterConfigOpDelete {
			return nil, fmt.Errorf("%w: %s needs a value", errInvalid, entry.Name)
		}
		changes = append(changes, messaging.ConfigChange{Name: entry.Name, Op: messaging.ConfigOp(entry.Op), Value: deref(entry.Value)}) //nolint:gosec // checked above
	}
	return changes, nil
}
