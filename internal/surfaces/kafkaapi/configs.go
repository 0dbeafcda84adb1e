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
	limit := within(len(request.Resources), 0)
	seen := make(map[resource]bool)
	for i := range request.Resources {
		asked := &request.Resources[i]
		at := resource{asked.ResourceType, asked.ResourceName}
		if seen[at] {
			continue // once is enough
		}
		seen[at] = true
		row := kmsg.NewDescribeConfigsResponseResource()
		row.ResourceType, row.ResourceName = at.kind, at.name
		var found []messaging.StreamConfig
		err := limit
		if err == nil {
			found, err = c.configsOf(ctx, at)
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.fail(err)
		}
		for j := range found {
			if len(asked.ConfigNames) == 0 || slices.Contains(asked.ConfigNames, found[j].Name) {
				row.Configs = append(row.Configs, describedConfig(request, at.kind, &found[j]))
			}
		}
		response.Resources = append(response.Resources, row)
	}
	return nil
}

// configsOf returns the configuration of a topic, of the broker or of a group.
func (c *call) configsOf(ctx context.Context, at resource) ([]messaging.StreamConfig, error) {
	switch at.kind {
	case kmsg.ConfigResourceTypeTopic:
		topic, err := c.topic(ctx, at.name, describing...)
		if err != nil {
			return nil, err
		}
		return topic.StreamConfigs(), nil
	case kmsg.ConfigResourceTypeBroker:
		if at.name != "" && at.name != strconv.Itoa(int(c.self())) {
			return nil, fmt.Errorf("%w: there is no broker %q here; the one that answers has the id %d", errInvalid,
				cut(at.name, 64), c.self())
		}
		return c.brokerConfigs(), nil
	case kmsg.ConfigResourceTypeGroupConfig:
		return c.groupConfigs(at.name)
	}
	return nil, unknownResource(at.kind)
}

func unknownResource(kind kmsg.ConfigResourceType) error {
	return fmt.Errorf("%w: configuration is of topics, the broker and groups; resource type %d is none of these",
		errInvalid, kind)
}

// brokerConfigs is what clients look for in a broker. None of it can be changed
// over this protocol.
func (c *call) brokerConfigs() []messaging.StreamConfig {
	host, port := c.conn.advertised()
	protocol := "SASL_PLAINTEXT"
	if c.conn.listener.TLS != nil {
		protocol = "SASL_SSL"
	}
	all := []messaging.StreamConfig{
		{
			Name: "advertised.listeners", Value: protocol + "://" + net.JoinHostPort(host, strconv.Itoa(int(port))),
			Kind: messaging.ConfigString, Doc: "Where clients of this listener are sent.",
		},
		{
			Name:  "auto.create.topics.enable",
			Value: strconv.FormatBool(c.session.cluster.Broker.MayCreateTopics(c.session.namespace)),
			Kind:  messaging.ConfigBoolean,
			Doc:   "Whether topics of the connection's namespace come into being when a client asks for them.",
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
			Doc: "Bytes of records in one answer to a fetch.",
		},
		{
			Name: "group.max.session.timeout.ms", Value: "1800000", Kind: messaging.ConfigInt,
			Doc: "Longest session of a member of a consumer group.",
		},
		{
			Name: "group.min.session.timeout.ms", Value: "6000", Kind: messaging.ConfigInt,
			Doc: "Shortest session of a member of a consumer group.",
		},
		{
			Name: "log.cleanup.policy", Value: "delete", Kind: messaging.ConfigList,
			Doc: "Cleanup policy of topics that set none.",
		},
		{Name: "min.insync.replicas", Value: "1", Kind: messaging.ConfigInt, Doc: "A partition has one replica."},
		{
			Name: "num.partitions", Value: "1", Kind: messaging.ConfigInt,
			Doc: "Partitions of topics that are made without a number, unless their namespace has another.",
		},
		{
			Name: "offsets.retention.minutes", Value: "10080", Kind: messaging.ConfigInt,
			Doc: "Minutes for which the offsets of a consumer group without members are kept.",
		},
		{
			Name: "socket.request.max.bytes", Value: strconv.Itoa(c.conn.server.opts.Limits.Frame),
			Kind: messaging.ConfigInt, Doc: "Bytes of the largest request.",
		},
	}
	for i := range all {
		all[i].ReadOnly, all[i].Set, all[i].Default = true, true, all[i].Value
	}
	return all
}

func describedConfig(request *kmsg.DescribeConfigsRequest, kind kmsg.ConfigResourceType,
	config *messaging.StreamConfig,
) kmsg.DescribeConfigsResponseResourceConfig {
	row := kmsg.NewDescribeConfigsResponseResourceConfig()
	row.Name, row.Value, row.ReadOnly = config.Name, text(config.Value), config.ReadOnly
	row.ConfigType = kmsg.ConfigType(config.Kind)
	row.Source = configSource(config)
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

// synonyms lists where a value can come from, the one in force first.
func synonyms(source kmsg.ConfigSource,
	config *messaging.StreamConfig,
) (all []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym) {
	add := func(value string, source kmsg.ConfigSource) {
		s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		s.Name, s.Value, s.Source = config.Name, text(value), source
		all = append(all, s)
	}
	add(config.Value, source)
	if source == kmsg.ConfigSourceDynamicTopicConfig {
		below := *config
		below.Set = false
		add(config.Default, configSource(&below))
	}
	return all
}

// configSource says where a value comes from. What policies say is shown as a
// default that can be changed while the broker runs.
func configSource(config *messaging.StreamConfig) kmsg.ConfigSource {
	switch {
	case config.Set:
		return kmsg.ConfigSourceDynamicTopicConfig
	case config.Inherited:
		return kmsg.ConfigSourceDynamicDefaultBrokerConfig
	}
	return kmsg.ConfigSourceDefaultConfig
}

// listConfigResources names what has configuration that can be asked for.
// Version 0 asks for one type only, of which there is none.
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
			topics, err := c.listed(ctx)
			if err != nil {
				response.ErrorCode = c.codeOf(err)
				return nil
			}
			for _, topic := range topics {
				add(kind, c.printed(topic.Name()))
			}
		case kmsg.ConfigResourceTypeBroker:
			add(kind, strconv.Itoa(int(c.self())))
		case kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics,
			kmsg.ConfigResourceTypeGroupConfig:
		default:
			response.ErrorCode, response.ConfigResources = codeVersion, nil
			return nil
		}
	}
	return nil
}
