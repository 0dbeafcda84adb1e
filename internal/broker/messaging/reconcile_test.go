package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

// crashingEngine is an engine that fails selected calls before it executes them. It simulates a crash
// between the catalogue's journal and the engine.
type crashingEngine struct {
	engine.Engine
	create, configure, drop bool
}

var errCrash = errors.New("crashed")

func (e *crashingEngine) CreateTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	if e.create {
		return errCrash
	}
	return e.Engine.CreateTopic(ctx, id, config)
}

func (e *crashingEngine) ConfigureTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	if e.configure {
		return errCrash
	}
	return e.Engine.ConfigureTopic(ctx, id, config)
}

func (e *crashingEngine) DeleteTopic(ctx context.Context, id engine.TopicID) error {
	if e.drop {
		return errCrash
	}
	return e.Engine.DeleteTopic(ctx, id)
}

func topicIDs(t *testing.T, eng engine.Engine) []engine.TopicID {
	t.Helper()
	ids, err := eng.ListTopics(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestRestartCompletesInterruptedChanges(t *testing.T) {
	t.Parallel()
	real, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	eng := &crashingEngine{Engine: real}
	c := openOver(t, eng, messaging.Options{})
	ctx := t.Context()
	c.create("kept", 0)
	c.create("dropped", 0)
	c.create("grown", 2)
	c.create("ruled", 0)

	eng.create, eng.configure, eng.drop = true, true, true
	if err := c.Catalogue.CreateTopic(ctx, topic("made"), messaging.NewTopic{}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if err := c.Catalogue.DeleteTopic(ctx, topic("dropped"), false); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if err := c.Catalogue.GrowTopic(ctx, topic("grown"), 3); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	ttl := int64(77)
	// The broker passes the policies of a namespace to the engine in the background and retries;
	// the caller waits only for a limited time.
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_ = c.Catalogue.UpdateNamespace(short, names.PublicDefault, func(p *messaging.Policies) error {
		p.TTLSeconds = &ttl
		return nil
	})
	c.do(c.Close())

	again := openOver(t, real, messaging.Options{})
	if got := len(topicIDs(t, real)); got != 4 {
		t.Errorf("engine has %d topics, want 4", got)
	}
	again.produce(topic("made"), text("x"))
	again.produce(topic("grown-partition-2"), text("x"))
	info, err := again.Catalogue.Topic(ctx, topic("ruled"))
	again.do(err)
	for { // the broker configures the topic in the background
		stats, err := real.DescribeTopic(ctx, engine.TopicID(info.ID))
		again.do(err)
		if stats.Config.TTL == 77*time.Second {
			break
		}
	}
}

func TestEngineIsConfiguredOnUse(t *testing.T) {
	t.Parallel()
	real, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	eng := &crashingEngine{Engine: real, create: true}
	c := openOver(t, eng, messaging.Options{})
	if err := c.Catalogue.CreateTopic(t.Context(), topic("orders"), messaging.NewTopic{}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	eng.create = false
	c.produce(topic("orders"), text("a"))
}

func TestCatalogueSurvivesSnapshots(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{SnapshotBytes: 1}) // a snapshot after every change
	ctx := t.Context()
	c.do(c.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: "acme", AdminRoles: []string{"boss"}}))
	ns := names.Namespace{Tenant: "acme", Name: "sales"}
	yes := true
	c.do(c.Catalogue.CreateNamespace(ctx, ns, messaging.Policies{Deduplicate: &yes}))
	odd := names.Topic{Namespace: ns, Local: "a/b ü"}
	c.do(c.Catalogue.CreateTopic(ctx, odd, messaging.NewTopic{Partitions: 3, Properties: map[string]string{"p": "q"}}))
	for i := range 20 {
		c.create(fmt.Sprint("t", i), int32(i%3))
	}
	c.do(c.Catalogue.DeleteTopic(ctx, topic("t7"), false))
	record := `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`
	_, err := c.Schemas.Add(ctx, odd, messaging.Schema{Type: messaging.SchemaAvro, Text: record}, false)
	c.do(err)
	before, err := c.Catalogue.Topic(ctx, odd)
	c.do(err)
	_, err = c.Catalogue.Terminate(ctx, topic("t3"))
	c.do(err)
	c.do(c.Close())

	again := openOver(t, c.engine, messaging.Options{SnapshotBytes: 1})
	after, err := again.Catalogue.Topic(ctx, odd)
	again.do(err)
	if after.ID != before.ID || after.Partitions != 3 || after.Policies.Properties["p"] != "q" ||
		after.Created != before.Created {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if s, err := again.Schemas.Latest(ctx, odd); err != nil || s.Text != record || s.Version != 0 {
		t.Errorf("schema %+v, %v", s, err)
	}
	if v, err := again.Schemas.Add(ctx, odd, messaging.Schema{Type: messaging.SchemaAvro, Text: " " + record},
		false); err != nil || v != 0 {
		t.Errorf("same schema again: got version %d, %v; want 0", v, err)
	}
	if p, err := again.Catalogue.Namespace(ctx, ns); err != nil || p.Deduplicate == nil || !*p.Deduplicate {
		t.Errorf("policies %+v, %v", p, err)
	}
	if !again.Grants.Granted("boss", messaging.TenantAdminPermissions()[0], odd) {
		t.Error("restored tenant has no administrator, want boss")
	}
	if got, err := again.Catalogue.Topic(ctx, topic("t3")); err != nil || !got.Terminated {
		t.Errorf("t3: %+v, %v", got, err)
	}
	_, err = again.Catalogue.Topic(ctx, topic("t7"))
	wantErr(t, err, messaging.ErrNoTopic)
	n := 0
	again.do(again.Catalogue.Topics(ctx, &names.PublicDefault, func(messaging.Topic) bool { n++; return true }))
	if n != 19 {
		t.Errorf("%d topics", n)
	}
	wantErr(t, again.Catalogue.DeleteNamespace(ctx, ns, false), messaging.ErrNamespaceBusy)
}

func TestTwoReplicasAgree(t *testing.T) {
	t.Parallel()
	a := newCluster(t, messaging.Options{})
	b := openOver(t, a.engine, messaging.Options{})
	a.create("orders", 0)
	b.subscribe(topic("orders"), "s")
	b.produce(topic("orders"), text("x"))
	got := a.receiveOne(topic("orders"), "s")
	b.ack(topic("orders"), "s", got.ID)
	a.do(a.Catalogue.DeleteTopic(t.Context(), topic("orders"), false))
	_, err := b.Producer.Produce(t.Context(), topic("orders"), text("x"))
	wantErr(t, err, messaging.ErrNoTopic)
}

// deletedTopicEngine is an engine that reports every topic as deleted when it is created, as the owner of a
// shard does for a topic that another caller has deleted since.
type deletedTopicEngine struct{ engine.Engine }

func (deletedTopicEngine) CreateTopic(context.Context, engine.TopicID, engine.TopicConfig) error {
	return engine.ErrNoTopic
}

func TestCreatedAndDeletedByAnotherCaller(t *testing.T) {
	t.Parallel()
	real, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	c := openOver(t, deletedTopicEngine{real}, messaging.Options{})
	if err := c.Catalogue.CreateTopic(t.Context(), topic("short"), messaging.NewTopic{}); err != nil {
		t.Errorf("create: got error %v, want none because the topic was created", err)
	}
}
