package kafkaapi_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// changeConfig changes a configuration of topic a and returns the error code.
func (r *rawClient) changeConfig(op kmsg.IncrementalAlterConfigOp, name string, value *string) int16 {
	r.Helper()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	row := kmsg.NewIncrementalAlterConfigsRequestResource()
	row.ResourceType, row.ResourceName = kmsg.ConfigResourceTypeTopic, "a"
	row.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Op: op, Value: value}}
	request.Resources = append(request.Resources, row)
	return roundTrip[*kmsg.IncrementalAlterConfigsResponse](r, request).Resources[0].ErrorCode
}

// TestConfigValues checks which values of configurations are accepted.
func TestConfigValues(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	refused := kerr.InvalidConfig.Code
	for _, c := range []struct {
		name, value string
		want        int16
	}{
		{"compression.gzip.level", "-1", 0},
		{"compression.gzip.level", "9", 0},
		{"compression.gzip.level", "0", refused},
		{"compression.gzip.level", "10", refused},
		{"compression.lz4.level", "17", 0},
		{"compression.lz4.level", "18", refused},
		{"compression.zstd.level", "22", 0},
		{"compression.zstd.level", "23", refused},
		{"retention.bytes", "-2", 0},
		{"retention.bytes", "-1", 0},
		{"retention.bytes", "x", refused},
		{"retention.ms", " 5 ", 0},
		{"retention.ms", "-2", refused},
		{"preallocate", "TRUE", 0},
		{"preallocate", "yes", refused},
		{"segment.bytes", "1048576", 0},
		{"segment.bytes", "1048575", refused},
		{"segment.bytes", "2147483648", refused},
		{"cleanup.policy", "compact", 0},
		{"cleanup.policy", "nonsense", refused},
	} {
		if got := wire.changeConfig(kmsg.IncrementalAlterConfigOpSet, c.name, &c.value); got != c.want {
			t.Errorf("%s=%q: got code %d, want %d", c.name, c.value, got, c.want)
		}
	}
	_, values := w.described(w.client(), kmsg.ConfigResourceTypeTopic, "a")
	for name, want := range map[string]string{"preallocate": "true", "retention.ms": "5"} {
		if got := *values[name].Value; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestUnknownConfigIsDeleted checks that deleting a configuration that does not exist succeeds.
func TestUnknownConfigIsDeleted(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	if got := wire.changeConfig(kmsg.IncrementalAlterConfigOpDelete, "no.such.config", nil); got != 0 {
		t.Errorf("got code %d, want success", got)
	}
	if got := wire.changeConfig(kmsg.IncrementalAlterConfigOpSet, "no.such.config", str("1")); got !=
		kerr.InvalidConfig.Code {
		t.Errorf("setting it: got code %d, want %d", got, kerr.InvalidConfig.Code)
	}
}

// TestTopicWithoutCleanupPolicy checks that a topic may have no cleanup policy, so that nothing is deleted.
func TestTopicWithoutCleanupPolicy(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	for name, c := range map[string]struct {
		op    kmsg.IncrementalAlterConfigOp
		value string
	}{
		"subtracting the last value": {kmsg.IncrementalAlterConfigOpSubtract, "delete"},
		"setting none":               {kmsg.IncrementalAlterConfigOpSet, ""},
	} {
		if got := wire.changeConfig(c.op, "cleanup.policy", &c.value); got != 0 {
			t.Errorf("%s: got code %d, want success", name, got)
		}
		_, values := w.described(w.client(), kmsg.ConfigResourceTypeTopic, "a")
		if got := *values["cleanup.policy"].Value; got != "" {
			t.Errorf("%s: got %q, want none", name, got)
		}
	}
	topic, err := w.broker.Kafka.KafkaTopic(t.Context(), publicTopic("a"))
	if err != nil || topic.Compacted() {
		t.Errorf("got %v, compacted %t; want a topic that is not compacted", err, topic.Compacted())
	}
	w.send("a", 0, "a record without a key")
}
