package kafkaapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/ops/audit"
)

func str(s string) *string { return &s }

// code returns the number of a Kafka error.
func code(err *kerr.Error) int16 { return err.Code }

// described returns the configurations of one resource.
func (w *harness) described(client *kgo.Client, kind kmsg.ConfigResourceType, name string,
	only ...string,
) (kmsg.DescribeConfigsResponseResource, map[string]kmsg.DescribeConfigsResponseResourceConfig) {
	w.Helper()
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.IncludeSynonyms, request.IncludeDocumentation = true, true
	request.Resources = []kmsg.DescribeConfigsRequestResource{{
		ResourceType: kind, ResourceName: name,
		ConfigNames: only,
	}}
	response, err := request.RequestWith(short(w.T), client.SeedBrokers()[0]) // regardless of the broker that it names
	w.ok(err)
	if len(response.Resources) != 1 {
		w.Fatalf("got %d resources, want 1", len(response.Resources))
	}
	byName := make(map[string]kmsg.DescribeConfigsResponseResourceConfig)
	for _, c := range response.Resources[0].Configs {
		byName[c.Name] = c
	}
	return response.Resources[0], byName
}

func TestDescribeConfigs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": str("60000")},
		"orders"); err != nil {
		t.Fatal(err)
	}
	w.ok(w.broker.Catalogue.CreateTopic(ctx, publicTopic("by-http"), messaging.NewTopic{}))

	_, got := w.described(client, kmsg.ConfigResourceTypeTopic, "orders")
	for name, want := range map[string]struct {
		value    string
		source   kmsg.ConfigSource
		kind     kmsg.ConfigType
		readOnly bool
	}{
		"retention.ms":        {"60000", kmsg.ConfigSourceDynamicTopicConfig, kmsg.ConfigTypeLong, false},
		"retention.bytes":     {"-1", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeLong, false},
		"cleanup.policy":      {"delete", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeList, false},
		"freshet.routing":     {"murmur2", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeString, true},
		"min.insync.replicas": {"1", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeInt, true},
	} {
		c := got[name]
		if c.Value == nil || *c.Value != want.value || c.Source != want.source || c.ConfigType != want.kind ||
			c.ReadOnly != want.readOnly || c.Documentation == nil {
			t.Errorf("%s: got %+v, want %+v and documentation", name, c, want)
		}
	}
	for name, c := range got {
		if c.Documentation == nil || *c.Documentation == "" || len(c.ConfigSynonyms) == 0 ||
			*c.ConfigSynonyms[0].Value != *c.Value {
			t.Errorf("%s: got %+v, want documentation, and the effective value as the first synonym", name, c)
		}
	}
	if s := got["retention.ms"].ConfigSynonyms; len(s) != 2 || *s[1].Value != "604800000" ||
		s[1].Source == kmsg.ConfigSourceDynamicTopicConfig {
		t.Errorf("synonyms of retention.ms: got %+v, want the default as the second", s)
	}
	if _, some := w.described(client, kmsg.ConfigResourceTypeTopic, "orders", "cleanup.policy",
		"no.such"); len(some) != 1 {
		t.Errorf("one existing name: got %v, want only it", some)
	}
	if _, http := w.described(client, kmsg.ConfigResourceTypeTopic,
		"by-http"); *http["freshet.routing"].Value != "murmur3" {
		t.Errorf("routing of a topic created over HTTP: got %s, want murmur3", *http["freshet.routing"].Value)
	}
	for _, name := range []string{"", "1"} {
		if _, broker := w.described(client, kmsg.ConfigResourceTypeBroker, name); broker["broker.id"].Value == nil ||
			!broker["broker.id"].ReadOnly || *broker["advertised.listeners"].Value != "SASL_PLAINTEXT://"+w.address {
			t.Errorf("broker %q: got %v, want a read-only list with the listener", name, broker)
		}
	}
	if row, group := w.described(client, kmsg.ConfigResourceTypeGroupConfig, "not there yet"); row.ErrorCode != 0 ||
		*group["consumer.session.timeout.ms"].Value != "45000" ||
		*group["consumer.heartbeat.interval.ms"].Value != "50" || !group["consumer.session.timeout.ms"].ReadOnly {
		t.Errorf("configuration of a group: got %+v, want the timeouts of the consumer protocol", row)
	}
	nobody := w.clientAs(as(w.account("nobody")))
	if row, _ := w.described(nobody, kmsg.ConfigResourceTypeGroupConfig,
		"g"); row.ErrorCode != code(kerr.GroupAuthorizationFailed) {
		t.Errorf("configuration of a group without a role: got code %d, want %v", row.ErrorCode,
			kerr.GroupAuthorizationFailed)
	}
	for _, tc := range []struct {
		kind kmsg.ConfigResourceType
		name string
		want *kerr.Error
	}{
		{kmsg.ConfigResourceTypeTopic, "unknown", kerr.UnknownTopicOrPartition},
		{kmsg.ConfigResourceTypeTopic, "no/good?", kerr.InvalidTopicException},
		{kmsg.ConfigResourceTypeBroker, "7", kerr.InvalidRequest},
		{kmsg.ConfigResourceTypeBroker, "x", kerr.InvalidRequest},
		{99, "x", kerr.InvalidRequest},
	} {
		if row, _ := w.described(client, tc.kind, tc.name); row.ErrorCode != code(tc.want) {
			t.Errorf("type %d, %q: got code %d, want %v", tc.kind, tc.name, row.ErrorCode, tc.want)
		}
	}
}

// values returns the configurations that a topic sets itself.
func (w *harness) values(topic string) string {
	w.Helper()
	row, _ := w.described(w.client(), kmsg.ConfigResourceTypeTopic, topic)
	var set []string
	for _, c := range row.Configs {
		if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			set = append(set, c.Name+"="+*c.Value)
		}
	}
	return strings.Join(set, " ")
}

func TestAlterConfigs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	set := func(name, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: str(value)}
	}
	for _, step := range []struct {
		name   string
		alter  []kadm.AlterConfig
		whole  bool
		dryRun bool
		fails  *kerr.Error
		want   string
	}{
		{
			"set",
			[]kadm.AlterConfig{set("retention.ms", "1000"), set("retention.bytes", "5000")},
			false, false, nil,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"only tried",
			[]kadm.AlterConfig{set("retention.ms", "2000")},
			false, true, nil,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"tried with a wrong value",
			[]kadm.AlterConfig{set("retention.ms", "x")},
			false, true, kerr.InvalidConfig,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"one wrong value changes nothing",
			[]kadm.AlterConfig{set("retention.ms", "2000"), set("segment.ms", "-7")},
			false, false, kerr.InvalidConfig, "retention.bytes=5000 retention.ms=1000",
		},
		{
			"unknown name",
			[]kadm.AlterConfig{set("no.such", "1")},
			false, false, kerr.InvalidConfig,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"read-only truth",
			[]kadm.AlterConfig{set("min.insync.replicas", "2")},
			false, false, kerr.InvalidConfig,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"routing is fixed",
			[]kadm.AlterConfig{set("freshet.routing", "murmur3")},
			false, false, kerr.InvalidConfig,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"routing as it is",
			[]kadm.AlterConfig{set("freshet.routing", "murmur2")},
			false, false, nil,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"named twice",
			[]kadm.AlterConfig{set("retention.ms", "1"), set("retention.ms", "2")},
			false, false,
			kerr.InvalidRequest, "retention.bytes=5000 retention.ms=1000",
		},
		{
			"no value",
			[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms"}},
			false, false, kerr.InvalidRequest,
			"retention.bytes=5000 retention.ms=1000",
		},
		{
			"delete",
			[]kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "retention.bytes"}},
			false, false, nil,
			"retention.ms=1000",
		},
		{
			"append",
			[]kadm.AlterConfig{{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: str("compact")}},
			false,
			false, nil, "cleanup.policy=delete,compact retention.ms=1000",
		},
		{
			"append again",
			[]kadm.AlterConfig{{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: str("compact")}},
			false, false, nil, "cleanup.policy=delete,compact retention.ms=1000",
		},
		{
			"append to no list",
			[]kadm.AlterConfig{{Op: kadm.AppendConfig, Name: "retention.ms", Value: str("1")}},
			false,
			false, kerr.InvalidConfig, "cleanup.policy=delete,compact retention.ms=1000",
		},
		{
			"append nonsense",
			[]kadm.AlterConfig{{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: str("x")}},
			false,
			false, kerr.InvalidConfig, "cleanup.policy=delete,compact retention.ms=1000",
		},
		{
			"subtract",
			[]kadm.AlterConfig{{Op: kadm.SubtractConfig, Name: "cleanup.policy", Value: str("delete")}},
			false,
			false, nil, "cleanup.policy=compact retention.ms=1000",
		},
		{
			"subtract the last",
			[]kadm.AlterConfig{{Op: kadm.SubtractConfig, Name: "cleanup.policy", Value: str("compact")}},
			false, false,
			nil, "cleanup.policy= retention.ms=1000",
		},
		{
			"replace the set, tried",
			[]kadm.AlterConfig{set("segment.ms", "5")},
			true, true, nil,
			"cleanup.policy= retention.ms=1000",
		},
		{"replace the set", []kadm.AlterConfig{set("segment.ms", "5")}, true, false, nil, "segment.ms=5"},
		{
			"replace by a wrong set",
			[]kadm.AlterConfig{set("segment.ms", "x")},
			true, false, kerr.InvalidConfig,
			"segment.ms=5",
		},
		{"replace by nothing", nil, true, false, nil, ""},
	} {
		alter := admin.AlterTopicConfigs
		switch {
		case step.whole && step.dryRun:
			alter = admin.ValidateAlterTopicConfigsState
		case step.whole:
			alter = admin.AlterTopicConfigsState
		case step.dryRun:
			alter = admin.ValidateAlterTopicConfigs
		}
		response, err := alter(ctx, step.alter, "orders")
		w.ok(err)
		if err := response[0].Err; (step.fails == nil) != (err == nil) || step.fails != nil &&
			err.Error() != step.fails.Error() {
			t.Errorf("%s: got %v (%s), want %v", step.name, err, response[0].ErrMessage, step.fails)
		}
		if got := w.values("orders"); got != step.want {
			t.Errorf("%s: got configuration %q, want %q", step.name, got, step.want)
		}
	}
	if got := w.trail.count("topics", "update", audit.Allowed); got < 10 {
		t.Errorf("got %d audit records of changes, want one for each without a dry run", got)
	}
	for name, alter := range map[string]func() (kadm.AlterConfigsResponses, error){
		"one by one": func() (kadm.AlterConfigsResponses, error) {
			return admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{set("num.partitions", "3")}, 1)
		},
		"as a whole": func() (kadm.AlterConfigsResponses, error) {
			return admin.AlterBrokerConfigsState(ctx, []kadm.AlterConfig{set("num.partitions", "3")}, 1)
		},
	} {
		if response, err := alter(); err != nil || response[0].Err == nil ||
			response[0].Err.Error() != kerr.PolicyViolation.Error() {
			t.Errorf("configuration of the broker %s: got %+v, %v; want %v", name, response, err, kerr.PolicyViolation)
		}
	}
}

func TestListConfigResources(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	list := func(client *kgo.Client, types ...int8) (int16, string) {
		request := kmsg.NewPtrListConfigResourcesRequest()
		request.ResourceTypes = types
		response, err := request.RequestWith(ctx, client)
		w.ok(err)
		var names []string
		for _, r := range response.ConfigResources {
			names = append(names, r.Name)
		}
		return response.ErrorCode, strings.Join(names, " ")
	}
	for _, tc := range []struct {
		types []int8
		code  int16
		want  string
	}{
		{nil, 0, "orders 1"},
		{[]int8{2}, 0, "orders"},
		{[]int8{4, 2, 2}, 0, "orders 1"},
		{[]int8{16, 32}, 0, ""},
		{[]int8{2, 77}, 35, ""},
	} {
		if code, got := list(client, tc.types...); code != tc.code || got != tc.want {
			t.Errorf("types %v: got code %d and %q, want %d and %q", tc.types, code, got, tc.code, tc.want)
		}
	}
	if code, got := list(w.clientAs(as(w.account("nobody"))), 2); code != 0 || got != "" {
		t.Errorf("without a role: got code %d and %q, want no topics", code, got)
	}
}

// TestCreateTopicWithoutValue checks that a configuration without a value creates no topic.
func TestCreateTopicWithoutValue(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	admin := kadm.NewClient(w.client())
	_, err := admin.CreateTopic(short(t), 1, 1,
		map[string]*string{"retention.bytes": nil, "compression.type": str("lz4")}, "orders")
	if !errors.Is(err, kerr.InvalidConfig) {
		t.Errorf("got %v, want %v", err, kerr.InvalidConfig)
	}
	if topics, err := admin.ListTopics(short(t)); err != nil || len(topics) != 0 {
		t.Errorf("got topics %v, %v; want none", topics.Names(), err)
	}
}
