package kafkaapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
)

// errReadOnly means that the configurations of a resource cannot be changed.
var errReadOnly = errors.New("configuration of brokers and groups cannot be changed over the Kafka protocol; " +
	"change the server's configuration file or the policies of namespaces")

// resource is a resource with configurations.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

// checkNotRepeated returns an error for a resource that occurs twice in a request, because the intended
// change would be ambiguous.
func checkNotRepeated(seen map[resource]int, at resource) error {
	if seen[at] > 1 {
		return fmt.Errorf("%w: %s occurs twice", errInvalid, at.name)
	}
	return nil
}

// changeConfig changes the configurations of a topic if the caller has the permission.
func (c *call) changeConfig(ctx context.Context, at resource, dryRun bool,
	change func(*messaging.KafkaTopic) error,
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
		c.auditAllowed(permitUpdate, topic.Name().String(), err)
	}
	return err
}

// alterConfigs replaces all configurations of topics.
func alterConfigs(ctx context.Context, c *call, request *kmsg.AlterConfigsRequest,
	response *kmsg.AlterConfigsResponse,
) error {
	limit := checkRequestSize(len(request.Resources), 0)
	seen := make(map[resource]int)
	for i := range request.Resources {
		seen[resource{request.Resources[i].ResourceType, request.Resources[i].ResourceName}]++
	}
	for i := range request.Resources {
		requested := &request.Resources[i]
		at := resource{requested.ResourceType, requested.ResourceName}
		row := kmsg.NewAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = at.kind, at.name
		err := errors.Join(limit, checkNotRepeated(seen, at))
		if err == nil {
			err = c.changeConfig(ctx, at, request.ValidateOnly, func(topic *messaging.KafkaTopic) error {
				config := make(map[string]string, len(requested.Configs))
				for _, entry := range requested.Configs {
					if _, twice := config[entry.Name]; twice || entry.Value == nil {
						return fmt.Errorf("%w: %s needs exactly one value", errInvalid, entry.Name)
					}
					config[entry.Name] = *entry.Value
				}
				return topic.ReplaceConfig(ctx, config, request.ValidateOnly)
			})
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
		}
		response.Resources = append(response.Resources, row)
	}
	return nil
}

// incrementalAlterConfigs changes single configurations of topics.
func incrementalAlterConfigs(ctx context.Context, c *call, request *kmsg.IncrementalAlterConfigsRequest,
	response *kmsg.IncrementalAlterConfigsResponse,
) error {
	limit := checkRequestSize(len(request.Resources), 0)
	seen := make(map[resource]int)
	for i := range request.Resources {
		seen[resource{request.Resources[i].ResourceType, request.Resources[i].ResourceName}]++
	}
	for i := range request.Resources {
		requested := &request.Resources[i]
		at := resource{requested.ResourceType, requested.ResourceName}
		row := kmsg.NewIncrementalAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = at.kind, at.name
		err := errors.Join(limit, checkNotRepeated(seen, at))
		if err == nil {
			err = c.changeConfig(ctx, at, request.ValidateOnly, func(topic *messaging.KafkaTopic) error {
				changes, err := configChanges(requested.Configs)
				if err != nil {
					return err
				}
				return topic.AlterConfig(ctx, changes, request.ValidateOnly)
			})
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
		}
		response.Resources = append(response.Resources, row)
	}
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
