package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

// cluster is a broker over a real engine in memory.
type cluster struct {
	*messaging.Broker
	t      testing.TB
	engine engine.Engine
}

func newCluster(t testing.TB, opts messaging.Options) *cluster {
	t.Helper()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	return openOver(t, eng, opts)
}

func openOver(t testing.TB, eng engine.Engine, opts messaging.Options) *cluster {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := messaging.Open(t.Context(), eng, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("closing the broker: %v", err)
		}
	})
	return &cluster{Broker: b, t: t, engine: eng}
}

func topic(local string) names.Topic {
	return names.Topic{Namespace: names.PublicDefault, Local: local}
}

// do fails the test if a preparatory call returned an error.
func (c *cluster) do(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) create(local string, partitions int32) names.Topic {
	c.t.Helper()
	c.do(c.Catalogue.CreateTopic(c.t.Context(), topic(local), messaging.NewTopic{Partitions: partitions}))
	return topic(local)
}

func (c *cluster) subscribe(name names.Topic, sub string) {
	c.t.Helper()
	c.do(c.Consumer.Subscribe(c.t.Context(), name, sub, messaging.Position{Kind: messaging.Earliest}, nil))
}

func text(payload string) *messaging.Message {
	return &messaging.Message{Payload: []byte(payload), SchemaVersion: messaging.NoSchema}
}

func (c *cluster) produce(name names.Topic, m *messaging.Message) messaging.Produced {
	c.t.Helper()
	p, err := c.Producer.Produce(c.t.Context(), name, m)
	c.do(err)
	return p
}

// receive returns the available messages without waiting.
func (c *cluster) receive(name names.Topic, sub string, n int) []messaging.Received {
	c.t.Helper()
	got, err := c.Consumer.Receive(c.t.Context(), name, sub, messaging.ReceiveOptions{Max: n})
	c.do(err)
	return got
}

func (c *cluster) receiveOne(name names.Topic, sub string) messaging.Received {
	c.t.Helper()
	got, err := c.Consumer.Receive(c.t.Context(), name, sub, messaging.ReceiveOptions{Wait: 10 * time.Second})
	c.do(err)
	if len(got) != 1 {
		c.t.Fatalf("got %d messages, want 1", len(got))
	}
	return got[0]
}

func (c *cluster) ack(name names.Topic, sub string, ids ...names.MessageID) {
	c.t.Helper()
	for _, id := range ids {
		c.do(c.Consumer.Settle(c.t.Context(), name, sub, messaging.Settlement{ID: id, Action: messaging.Ack}))
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestNewClusterHasPublicDefault(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	list, err := c.Catalogue.Namespaces(t.Context(), "public")
	if err != nil || len(list) != 1 || list[0] != names.PublicDefault {
		t.Fatalf("got %v, %v", list, err)
	}
	// After its deletion it is not created again.
	c.do(c.Catalogue.DeleteNamespace(t.Context(), names.PublicDefault, false))
	again := openOver(t, c.engine, messaging.Options{})
	if list, err := again.Catalogue.Namespaces(t.Context(), "public"); err != nil || len(list) != 0 {
		t.Fatalf("got %v, %v", list, err)
	}
}

func TestTenantsAndNamespacesAreBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Limits: messaging.Limits{Tenants: 3, Namespaces: 3}})
	ctx := t.Context()
	for i, last := 0, false; !last; i++ {
		err := c.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: fmt.Sprint("t", i)})
		if last = errors.Is(err, messaging.ErrTopicLimit); !last {
			c.do(err)
		}
		if i > 3 {
			t.Fatalf("tenant %d: got no error, want the limit of 3", i)
		}
	}
	for i, last := 0, false; !last; i++ {
		err := c.Catalogue.CreateNamespace(ctx, names.Namespace{Tenant: "t0", Name: fmt.Sprint("n", i)},
			messaging.Policies{})
		if last = errors.Is(err, messaging.ErrTopicLimit); !last {
			c.do(err)
		}
		if i > 3 {
			t.Fatalf("namespace %d: got no error, want the limit of 3", i)
		}
	}
	// A deletion frees capacity.
	c.do(c.Catalogue.DeleteNamespace(ctx, names.Namespace{Tenant: "t0", Name: "n0"}, false))
	c.do(c.Catalogue.CreateNamespace(ctx, names.Namespace{Tenant: "t0", Name: "n9"}, messaging.Policies{}))
}

func TestTenantsAndNamespaces(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	acme := messaging.Tenant{Name: "acme", AdminRoles: []string{"boss"}}
	sales := names.Namespace{Tenant: "acme", Name: "sales"}
	wantErr(t, c.Catalogue.CreateNamespace(ctx, sales, messaging.Policies{}), messaging.ErrNoTenant)
	c.do(c.Catalogue.CreateTenant(ctx, acme))
	wantErr(t, c.Catalogue.CreateTenant(ctx, acme), messaging.ErrTenantExists)
	wantErr(t, c.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: "persistent"}), messaging.ErrName)
	wantErr(t, c.Catalogue.UpdateTenant(ctx, "nobody", func(*messaging.Tenant) error { return nil }),
		messaging.ErrNoTenant)
	c.do(c.Catalogue.CreateNamespace(ctx, sales, messaging.Policies{}))
	wantErr(t, c.Catalogue.CreateNamespace(ctx, sales, messaging.Policies{}), messaging.ErrNamespaceExists)
	wantErr(t, c.Catalogue.CreateNamespace(ctx, names.Namespace{Tenant: "acme", Name: "a b"}, messaging.Policies{}),
		messaging.ErrName)
	wantErr(t, c.Catalogue.DeleteTenant(ctx, "acme"), messaging.ErrTenantBusy)

	orders := names.Topic{Namespace: sales, Local: "orders"}
	c.do(c.Catalogue.CreateTopic(ctx, orders, messaging.NewTopic{}))
	wantErr(t, c.Catalogue.DeleteNamespace(ctx, sales, false), messaging.ErrNamespaceBusy)
	c.do(c.Catalogue.DeleteNamespace(ctx, sales, true))
	c.do(c.Catalogue.DeleteTenant(ctx, "acme"))
	_, err := c.Catalogue.Topic(ctx, orders)
	wantErr(t, err, messaging.ErrNoTenant)
}

func TestGrants(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	c.do(c.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: "acme", AdminRoles: []string{"boss"}}))
	ns := names.Namespace{Tenant: "acme", Name: "sales"}
	c.do(c.Catalogue.CreateNamespace(ctx, ns, messaging.Policies{
		Permissions: map[string][]messaging.Action{"reader": {messaging.ActionConsume}},
	}))
	orders := names.Topic{Namespace: ns, Local: "orders"}
	c.do(c.Catalogue.CreateTopic(ctx, orders, messaging.NewTopic{Partitions: 2}))
	c.do(c.Catalogue.UpdateTopic(ctx, orders, func(p *messaging.Policies) error {
		p.Permissions = map[string][]messaging.Action{"writer": {messaging.ActionProduce}}
		return nil
	}))
	for _, tc := range []struct {
		role   string
		topic  names.Topic
		action messaging.Action
		want   bool
	}{
		{"reader", orders, messaging.ActionConsume, true},
		{"reader", orders, messaging.ActionProduce, false},
		{"writer", orders, messaging.ActionProduce, true},
		{"writer", orders.WithPartition(1), messaging.ActionProduce, true},
		{"writer", orders, messaging.ActionConsume, false},
		{"writer", names.Topic{Namespace: ns, Local: "other"}, messaging.ActionProduce, false},
		{"boss", orders, messaging.ActionProduce, true},
		{"nobody", orders, messaging.ActionConsume, false},
		{"", orders, messaging.ActionConsume, false},
	} {
		permission, _ := tc.action.Permission()
		if got := c.Grants.Granted(tc.role, permission, tc.topic); got != tc.want {
			t.Errorf("Granted(%q, %s, %s) = %v", tc.role, permission, tc.topic.Local, got)
		}
	}
	wantErr(t, c.Catalogue.UpdateTopic(ctx, orders, func(p *messaging.Policies) error {
		p.Permissions["x"] = []messaging.Action{"fly"}
		return nil
	}), messaging.ErrPolicy)
}

func TestTopics(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	create := func(ctx context.Context, name names.Topic, partitions int32, properties map[string]string) error {
		return c.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{Partitions: partitions, Properties: properties})
	}
	c.create("plain", 0)
	c.create("wide", 3)
	for _, tc := range []struct {
		name string
		err  error
		want error
	}{
		{"exists", create(ctx, topic("plain"), 0, nil), messaging.ErrTopicExists},
		{"exists with other partitions", create(ctx, topic("plain"), 4, nil), messaging.ErrTopicExists},
		{"partition of a topic", create(ctx, topic("wide-partition-1"), 0, nil), messaging.ErrTopicExists},
		{"partition past the end", create(ctx, topic("wide-partition-3"), 0, nil), messaging.ErrPartitionName},
		{"partition of nothing", create(ctx, topic("nothing-partition-0"), 0, nil), messaging.ErrPartitionName},
		{"too many partitions", create(ctx, topic("x"), 1025, nil), messaging.ErrPartitionCount},
		{
			"no namespace", create(ctx,
				names.Topic{Namespace: names.Namespace{Tenant: "public", Name: "no"}, Local: "x"}, 0, nil),
			messaging.ErrNoNamespace,
		},
		{"bad name", create(ctx, topic(" x"), 0, nil), messaging.ErrName},
		{"shrink", c.Catalogue.GrowTopic(ctx, topic("wide"), 2), messaging.ErrPartitionCount},
		{"grow what has no partitions", c.Catalogue.GrowTopic(ctx, topic("plain"), 2), messaging.ErrWrongKind},
		{"grow nothing", c.Catalogue.GrowTopic(ctx, topic("nothing"), 2), messaging.ErrNoTopic},
		{"delete a partition", c.Catalogue.DeleteTopic(ctx, topic("wide-partition-0"), false), messaging.ErrWrongKind},
		{"delete nothing", c.Catalogue.DeleteTopic(ctx, topic("nothing"), false), messaging.ErrNoTopic},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, tc.err, tc.want)
		}
	}
	c.do(c.Catalogue.GrowTopic(ctx, topic("wide"), 5))
	got, err := c.Catalogue.Topic(ctx, topic("wide-partition-4"))
	if err != nil || got.Partitions != 5 || got.Partition != 4 || got.Name != topic("wide") {
		t.Errorf("got %+v, %v", got, err)
	}
	var list []string
	c.do(c.Catalogue.Topics(ctx, nil, func(t messaging.Topic) bool {
		list = append(list, t.Name.Local)
		return true
	}))
	if len(list) != 2 || list[0] != "plain" || list[1] != "wide" {
		t.Errorf("got %v", list)
	}
}

func TestIncarnationsAreNeverReused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	old := c.produce(name, text("a")).ID
	c.do(c.Catalogue.DeleteTopic(ctx, name, false))
	c.create("orders", 0)
	c.subscribe(name, "s")
	fresh := c.produce(name, text("b")).ID
	if fresh.Ledger <= old.Ledger {
		t.Errorf("new topic has incarnation %d, want more than the old %d", fresh.Ledger, old.Ledger)
	}
	err := c.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: old, Action: messaging.Ack})
	wantErr(t, err, messaging.ErrForeignID)
	if got := c.receiveOne(name, "s"); string(got.Payload) != "b" {
		t.Errorf("got %q", got.Payload)
	}
}

func TestNamespaceTopicLimit(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	limit := 1
	c.do(c.Catalogue.UpdateNamespace(t.Context(), names.PublicDefault, func(p *messaging.Policies) error {
		p.MaxTopics = &limit
		return nil
	}))
	c.create("one", 0)
	wantErr(t, c.Catalogue.CreateTopic(t.Context(), topic("two"), messaging.NewTopic{}), messaging.ErrTopicLimit)
}

func TestPoliciesReachTheEngine(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	config := func() engine.TopicConfig {
		t.Helper()
		info, err := c.Catalogue.Topic(ctx, name)
		c.do(err)
		stats, err := c.engine.DescribeTopic(ctx, engine.TopicID(info.ID))
		c.do(err)
		return stats.Config
	}
	if got := config(); got.RetainAge != 7*24*time.Hour || got.RetainBytes != 10<<30 || got.MaxUnacked != 200_000 {
		t.Errorf("defaults: %+v", got)
	}
	c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.Retention = &messaging.Retention{Minutes: -1, Megabytes: 100}
		return nil
	}))
	if got := config(); got.RetainAge != -1 || got.RetainBytes != 100<<20 {
		t.Errorf("of the namespace: %+v", got)
	}
	ttl := int64(60)
	c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
		p.TTLSeconds = &ttl
		p.BacklogQuota = &messaging.BacklogQuota{Bytes: 1000, Action: messaging.QuotaEvict}
		return nil
	}))
	if got := config(); got.TTL != time.Minute || got.BacklogBytes != 1000 || !got.BacklogEvict ||
		got.RetainBytes != 100<<20 {
		t.Errorf("of the topic: %+v", got)
	}
	wantErr(t, c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.Retention = &messaging.Retention{Minutes: 1}
		return nil
	}), messaging.ErrPolicy)
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	last := c.produce(name, text("a")).ID
	got, err := c.Catalogue.Terminate(t.Context(), name)
	if err != nil || got != last {
		t.Errorf("got %v, %v; want %v", got, err, last)
	}
	_, err = c.Producer.Produce(t.Context(), name, text("b"))
	wantErr(t, err, engine.ErrTerminated)
	c.create("wide", 2)
	_, err = c.Catalogue.Terminate(t.Context(), topic("wide"))
	wantErr(t, err, messaging.ErrPartitioned)
}

// cancelled returns a context that is already cancelled.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
