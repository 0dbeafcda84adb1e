package messaging

import (
	"math"
	"testing"

	"freshet/internal/storage/engine"
)

// TestKafkaConfigsAreDocumented checks that every configuration has a description.
func TestKafkaConfigsAreDocumented(t *testing.T) {
	t.Parallel()
	for name := range kafkaConfigs {
		if kafkaConfigDocs[name] == "" {
			t.Errorf("%s: got no documentation, want some", name)
		}
	}
	for name := range kafkaConfigDocs {
		if _, ok := kafkaConfigs[name]; !ok {
			t.Errorf("%s: got documentation of a configuration that does not exist", name)
		}
	}
}

// TestSizeLimitDoesNotWrap checks that a huge retention.bytes does not overflow to a small limit
// when it is multiplied by the number of partitions.
func TestSizeLimitDoesNotWrap(t *testing.T) {
	t.Parallel()
	for value, want := range map[int64]int64{
		-1: -1, 0: 0, 1000: 4000, math.MaxInt64 / 4: math.MaxInt64 - 3, 1<<62 + 1: -1, math.MaxInt64: -1,
	} {
		rules, config := kafkaRules{retainBytes: &value}, engine.TopicConfig{Partitions: 4}
		rules.configure(&config)
		if config.RetainBytes != want {
			t.Errorf("retention.bytes %d on 4 partitions: got a limit of %d, want %d", value, config.RetainBytes, want)
		}
	}
}

func TestEditList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		current, change string
		add             bool
		want            string
	}{
		{"delete", "compact", true, "delete,compact"},
		{"delete, compact", "compact", true, "delete,compact"},
		{"delete,compact", "delete", false, "compact"},
		{"delete,compact", " delete , compact", false, ""},
		{"", "delete", true, "delete"},
		{"delete", "compact", false, "delete"},
	} {
		if got := editList(tc.current, tc.change, tc.add); got != tc.want {
			t.Errorf("%q with %q, add %v: got %q, want %q", tc.current, tc.change, tc.add, got, tc.want)
		}
	}
}
