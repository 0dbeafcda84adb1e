package messaging_test

import (
	"fmt"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

// lockOf sets how long records stay leased.
func lockOf(millis string) []messaging.ConfigChange {
	return setGroup("share.record.lock.duration.ms", millis)
}

func setGroup(name, value string) []messaging.ConfigChange {
	return []messaging.ConfigChange{{Name: name, Value: value}}
}

// TestGroupConfigsAreDurable checks that configurations of groups survive a restart, with and without a snapshot, and
// end with their group and their tenant.
func TestGroupConfigsAreDurable(t *testing.T) {
	t.Parallel()
	for _, snapshotBytes := range []int64{0, 1} {
		opts := messaging.Options{SnapshotBytes: snapshotBytes}
		c := newCluster(t, opts)
		ctx := t.Context()
		for _, tenant := range []string{"one", "two"} {
			c.do(c.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: tenant}))
			for _, group := range []string{"a", "b"} {
				c.do(c.Shares.AlterGroupConfig(ctx, tenant, group, lockOf("5000"), false))
			}
		}
		c.do(c.Shares.AlterGroupConfig(ctx, "one", "a", lockOf("9000"), true)) // dry run
		c.do(c.Shares.Forget(ctx, "one", "b"))
		c.do(c.Catalogue.DeleteTenant(ctx, "two"))
		again := openOver(t, c.engine, opts)
		if got := again.Shares.GroupConfig("one", "a").Lease; got != 5*time.Second {
			t.Errorf("snapshots of %d bytes: lease of group a is %v after a restart, want 5s", snapshotBytes, got)
		}
		one, two := again.Shares.ConfiguredGroups("one"), again.Shares.ConfiguredGroups("two")
		if fmt.Sprint(one, two) != "[a] []" {
			t.Errorf("snapshots of %d bytes: groups with configurations are %v and %v, want [a] and none",
				snapshotBytes, one, two)
		}
	}
}

// TestGroupConfigLimits checks how many groups of a tenant may have configurations.
func TestGroupConfigLimits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	set := func(group string) error {
		return c.Shares.AlterGroupConfig(t.Context(), "public", group,
			setGroup("share.isolation.level", "read_committed"), false)
	}
	for i := range 1000 {
		c.do(set(fmt.Sprint("g", i)))
	}
	if err := set("late"); err == nil {
		t.Error("group 1001 of a tenant got configurations")
	}
	c.do(set("g0"))
}

// TestEnsureSubscription checks where a share group starts, and that its limit of deliveries keeps other properties of
// a subscription.
func TestEnsureSubscription(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := names.Topic{Namespace: names.PublicDefault, Local: "jobs"}
	topic, err := c.Kafka.CreateKafkaTopic(ctx, name, 1, nil, false)
	c.do(err)
	_, err = c.Producer.Produce(ctx, name, &messaging.Message{Payload: []byte("x"), SchemaVersion: messaging.NoSchema})
	c.do(err)
	for group, want := range map[string]uint64{"latest": 0, "earliest": 1, "by_duration:PT1H": 1} {
		id := fmt.Sprint("g-", len(group))
		c.do(c.Shares.AlterGroupConfig(ctx, "public", id, setGroup("share.auto.offset.reset", group), false))
		c.do(c.Shares.Ensure(ctx, topic, "public", id))
		offsets, err := c.Shares.Offsets(ctx, topic)
		c.do(err)
		if got := offsets[id][0].Lag; got != want {
			t.Errorf("%s: lag %d, want %d", group, got, want)
		}
	}
	c.do(c.Consumer.Subscribe(ctx, name, "own", messaging.Position{},
		map[string]string{"x": "y", "ackTimeoutMillis": "2000"}))
	c.do(c.Shares.AlterGroupConfig(ctx, "public", "own", setGroup("share.delivery.count.limit", "3"), false))
	c.do(c.Shares.Ensure(ctx, topic, "public", "own"))
	properties, err := c.Consumer.SubscriptionProperties(ctx, name, "own")
	c.do(err)
	if fmt.Sprint(properties) != "map[ackTimeoutMillis:2000 maxRedeliverCount:2 x:y]" {
		t.Errorf("properties are %v, want the limit and the others", properties)
	}
	got, err := c.Shares.Acquire(ctx, topic, "own", messaging.ShareRequest{Max: 1, MaxBytes: 1 << 20})
	c.do(err)
	if len(got) != 0 {
		t.Errorf("acquired %d messages from before the subscription", len(got))
	}
}
