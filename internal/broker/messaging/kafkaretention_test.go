package messaging_test

import (
	"testing"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// TestKafkaRetentionReachesTheEngine checks that changed Kafka configurations have an effect at once, and not only
// after a restart.
func TestKafkaRetentionReachesTheEngine(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	created, err := c.Kafka.CreateKafkaTopic(ctx, topic("orders"), 2, nil, false)
	c.do(err)
	check := func(step string, age time.Duration, bytes int64) {
		t.Helper()
		stats, err := c.engine.DescribeTopic(ctx, engine.TopicID(created.ID()))
		c.do(err)
		if stats.Config.RetainAge != age || stats.Config.RetainBytes != bytes {
			t.Errorf("%s: the engine retains %v and %d bytes, want %v and %d", step, stats.Config.RetainAge,
				stats.Config.RetainBytes, age, bytes)
		}
	}
	const week = 7 * 24 * time.Hour
	check("new", week, -1)
	alter := func(name, value string, op messaging.ConfigOp) {
		t.Helper()
		found, err := c.Kafka.KafkaTopic(ctx, topic("orders"))
		c.do(err)
		c.do(found.AlterConfig(ctx, []messaging.ConfigChange{{Name: name, Value: value, Op: op}}, false))
	}
	alter("retention.ms", "5000", messaging.ConfigSet)
	check("retention.ms", 5*time.Second, -1)
	alter("retention.bytes", "1000", messaging.ConfigSet)
	check("retention.bytes", 5*time.Second, 2000)
	alter("cleanup.policy", "compact", messaging.ConfigSet)
	check("cleanup.policy", -1, -1)
	alter("cleanup.policy", "", messaging.ConfigReset)
	check("cleanup.policy reset", 5*time.Second, 2000)
	found, err := c.Kafka.KafkaTopic(ctx, topic("orders"))
	c.do(err)
	c.do(found.ReplaceConfig(ctx, map[string]string{"retention.ms": "6000"}, false))
	check("replaced", 6*time.Second, -1)
	alter("retention.ms", "", messaging.ConfigReset)
	check("reset", week, -1)
}
