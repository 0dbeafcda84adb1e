package kafkaapi

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
)

func describeConfigs(ctx context.Context, c *call, request *kmsg.DescribeConfigsRequest,
	response *kmsg.DescribeConfigsResponse,
) error {
	limit := checkRequestSize(len(request.Resources), 0)
	seen := make(map[resource]bool)
	for i := range request.Resources {
		requested := &request.Resources[i]
		at := resource{requested.ResourceType, requested.ResourceName}
		if seen[at] {
			continue // describe a repeated resource once
		}
		seen[at] = true
		row := kmsg.NewDescribeConfigsResponseResource()
		row.ResourceType, row.ResourceName = at.kind, at.name
		var found []messaging.KafkaConfig
		err := limit
		if err == nil {
			found, err = c.configsOf(ctx, at)
		}
		row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
		for j := range found {
			if len(requested.ConfigNames) == 0 || slices.Contains(requested.ConfigNames, found[j].Name) {
				row.Configs = append(row.Configs, describedConfig(request, at.kind, &found[j]))
			}
		}
		response.Resources = append(response.Resources, row)
	}
	return nil
}

// configsOf returns the configurations of a topic, the broker or a group.
func (c *call) configsOf(ctx context.Context, at resource) ([]messaging.KafkaConfig, error) {
	switch at.kind {
	case kmsg.ConfigResourceTypeTopic:
		topic, err := c.topic(ctx, at.name, describePermissions...)
		if err != nil {
			return nil, err
		}
		return topic.Configs(), nil
	case kmsg.ConfigResourceTypeBroker:
		if at.name != "" && at.name != strconv.Itoa(int(c.self())) {
			return nil, fmt.Errorf("%w: broker %q does not exist; this broker has id %d", errInvalid,
				cut(at.name, 64), c.self())
		}
		return c.brokerConfigs(), nil
	case kmsg.ConfigResourceTypeGroupConfig:
		return c.groupConfigs(ctx, at.name)
	}
	return nil, unknownResource(at.kind)
}

func unknownResource(kind kmsg.ConfigResourceType) error {
	return fmt.Errorf("%w: resource type %d has no configurations; only topics, brokers and groups have",
		errInvalid, kind)
}

// brokerConfigs returns the broker configurations that clients read. They cannot be changed over
// the Kafka protocol.
func (c *call) brokerConfigs() []messaging.KafkaConfig {
	host, port := c.conn.advertised()
	protocol := "SASL_PLAINTEXT"
	if c.conn.listener.TLS != nil {
		protocol = "SASL_SSL"
	}
	all := []messaging.KafkaConfig{
		{
			Name: "advertised.listeners", Value: protocol + "://" + net.JoinHostPort(host, strconv.Itoa(int(port))),
			Kind: messaging.ConfigString, Doc: "Address that clients of this listener connect to.",
		},
		{
			Name:  "auto.create.topics.enable",
			Value: strconv.FormatBool(c.session.cluster.Namespaces.AutoCreatesTopics(c.session.namespace)),
			Kind:  messaging.ConfigBoolean,
			Doc:   "Whether requests for missing topics of the connection's namespace create them.",
		},
		{
			Name: "broker.id", Value: strconv.Itoa(int(c.self())), Kind: messaging.ConfigInt,
			Doc: "The id of this broker.",
		},
		{
			Name: "compression.type", Value: "producer", Kind: messaging.ConfigString,
			Doc: "Batches are stored as producers compress them.",
		},
		{
			Name: "default.replication.factor", Value: "1", Kind: messaging.ConfigInt,
			Doc: "A partition has one replica.",
		},
		{Name: "delete.topic.enable", Value: "true", Kind: messaging.ConfigBoolean, Doc: "Topics can be deleted."},
		{
			Name: "fetch.max.bytes", Value: strconv.Itoa(maxFetchBytes), Kind: messaging.ConfigInt,
			Doc: "Maximum bytes of records in one fetch response.",
		},
		{
			Name: "group.max.session.timeout.ms", Value: "1800000", Kind: messaging.ConfigInt,
			Doc: "Maximum session timeout of a consumer group member.",
		},
		{
			Name: "group.min.session.timeout.ms", Value: "6000", Kind: messaging.ConfigInt,
			Doc: "Minimum session timeout of a consumer group member.",
		},
		{
			Name: "log.cleanup.policy", Value: "delete", Kind: messaging.ConfigList,
			Doc: "Default cleanup policy of topics.",
		},
		{Name: "min.insync.replicas", Value: "1", Kind: messaging.ConfigInt, Doc: "A partition has one replica."},
		{
			Name: "num.partitions", Value: "1", Kind: messaging.ConfigInt,
			Doc: "Default number of partitions of new topics, unless their namespace sets another.",
		},
		{
			Name: "offsets.retention.minutes", Value: "10080", Kind: messaging.ConfigInt,
			Doc: "Minutes to keep the offsets of a consumer group without members.",
		},
		{
			Name: "socket.request.max.bytes", Value: strconv.Itoa(c.conn.server.opts.Limits.MaxFrame),
			Kind: messaging.ConfigInt, Doc: "Maximum size of a request in bytes.",
		},
	}
	for i := range all {
		all[i].ReadOnly, all[i].Set, all[i].Default = true, true, all[i].Value
	}
	return all
}

func describedConfig(request *kmsg.DescribeConfigsRequest, kind kmsg.ConfigResourceType,
	config *messaging.KafkaConfig,
) kmsg.DescribeConfigsResponseResourceConfig {
	row := kmsg.NewDescribeConfigsResponseResourceConfig()
	row.Name, row.Value, row.ReadOnly = config.Name, text(config.Value), config.ReadOnly
	row.ConfigType = kmsg.ConfigType(config.Kind)
	row.Source = configSource(config)
	if kind == kmsg.ConfigResourceTypeGroupConfig && config.Set {
		row.Source = kmsg.ConfigSourceGroupConfig
	}
	if kind == kmsg.ConfigResourceTypeBroker {
		row.Source = kmsg.ConfigSourceStaticBrokerConfig
	}
	row.IsDefault = row.Source == kmsg.ConfigSourceDefaultConfig
	if request.IncludeSynonyms {
		row.ConfigSynonyms = synonyms(row.Source, config)
	}
	if request.IncludeDocumentation {
		row.Documentation = text(config.Doc)
	}
	return row
}

// synonyms lists the possible sources of a value, the effective one first.
func synonyms(source kmsg.ConfigSource,
	config *messaging.KafkaConfig,
) (all []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym) {
	add := func(value string, source kmsg.ConfigSource) {
		s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		s.Name, s.Value, s.Source = config.Name, text(value), source
		all = append(all, s)
	}
	add(config.Value, source)
	if source == kmsg.ConfigSourceDynamicTopicConfig || source == kmsg.ConfigSourceGroupConfig {
		below := *config
		below.Set = false
		add(config.Default, configSource(&below))
	}
	return all
}

// configSource returns the source of a value. A value from policies is reported as a dynamic
// default.
func configSource(config *messaging.KafkaConfig) kmsg.ConfigSource {
	switch {
	case config.Set:
		return kmsg.ConfigSourceDynamicTopicConfig
	case config.Inherited:
		return kmsg.ConfigSourceDynamicDefaultBrokerConfig
	}
	return kmsg.ConfigSourceDefaultConfig
}

// listConfigResources lists the resources with configurations. Version 0 requests only client
// metrics, which do not exist.
func listConfigResources(ctx context.Context, c *call, request *kmsg.ListConfigResourcesRequest,
	response *kmsg.ListConfigResourcesResponse,
) error {
	if c.version == 0 {
		return nil
	}
	wanted := request.ResourceTypes
	if len(wanted) == 0 {
		wanted = []int8{int8(kmsg.ConfigResourceTypeTopic), int8(kmsg.ConfigResourceTypeBroker)}
	}
	add := func(kind kmsg.ConfigResourceType, name string) {
		row := kmsg.NewListConfigResourcesResponseConfigResource()
		row.Name, row.Type = name, int8(kind)
		response.ConfigResources = append(response.ConfigResources, row)
	}
	slices.Sort(wanted)
	for _, number := range slices.Compact(wanted) {
		switch kind := kmsg.ConfigResourceType(number); kind {
		case kmsg.ConfigResourceTypeTopic:
			topics, err := c.visibleTopics(ctx)
			if err != nil {
				response.ErrorCode = c.codeOf(err)
				return nil
			}
			for _, topic := range topics {
				add(kind, c.displayName(topic.Name()))
			}
		case kmsg.ConfigResourceTypeBroker:
			add(kind, strconv.Itoa(int(c.self())))
		case kmsg.ConfigResourceTypeGroupConfig:
			for _, group := range c.configuredGroups(ctx) {
				add(kind, group)
			}
		case kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics:
		default:
			response.ErrorCode, response.ConfigResources = codeVersion, nil
			return nil
		}
	}
	return nil
}
