package messaging_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/messaging/messagingtest"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

var payProd = names.Namespace{Tenant: "pay", Name: "prod"}

func (c *cluster) createNamespace(ns names.Namespace) error {
	c.t.Helper()
	err := c.Catalogue.CreateTenant(c.t.Context(), messaging.Tenant{Name: ns.Tenant})
	if err != nil && !errors.Is(err, messaging.ErrTenantExists) {
		c.t.Fatal(err)
	}
	return c.Catalogue.CreateNamespace(c.t.Context(), ns, messaging.Policies{})
}

// TestAttackSquattedTopicName checks that no call creates a topic whose name begins with that of an existing namespace.
func TestAttackSquattedTopicName(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	c.do(c.createNamespace(payProd))
	c.create("orders", 0)
	attempts, successes := 0, 0
	for _, ns := range []names.Namespace{names.PublicDefault, payProd} {
		for _, local := range []string{"pay.prod.orders", "pay.prod.a.b", "pay.prod."} {
			name := names.Topic{Namespace: ns, Local: local}
			_, kafka := c.Kafka.CreateKafkaTopic(ctx, name, 1, nil, false)
			_, dry := c.Kafka.CreateKafkaTopic(ctx, name, 1, nil, true)
			_, schema := c.Schemas.Add(ctx, name, messaging.Schema{Type: "STRING"}, true)
			letters := c.Consumer.Subscribe(ctx, names.Topic{Namespace: ns, Local: "orders"}, "letters",
				messaging.Position{}, map[string]string{
					messaging.PropertyMaxRedeliver: "1", messaging.PropertyDeadLetterTopic: name.String(),
				})
			if ns == payProd {
				letters = messaging.ErrDottedName // pay/prod has no topic orders
			}
			for call, err := range map[string]error{
				"topic":        c.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{}),
				"partitioned":  c.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{Partitions: 2}),
				"Kafka":        kafka,
				"Kafka check":  dry,
				"subscription": c.Consumer.Subscribe(ctx, name, "s", messaging.Position{}, nil),
				"schema":       schema,
				"dead letters": letters,
			} {
				attempts++
				if !errors.Is(err, messaging.ErrDottedName) {
					successes++
					t.Errorf("%s %s: got error %v, want %v", call, name, err, messaging.ErrDottedName)
				}
			}
			if has, err := c.Catalogue.HasTopic(ctx, name); has || err != nil {
				t.Errorf("%s exists (%v), want no topic", name, err)
			}
		}
	}
	tally.Attack(t, "create a topic whose name begins with that of a namespace", attempts, successes)
	for _, local := range []string{
		"pay.prod", "pay.production.orders", "prod.pay.orders", "pay..prod.x", ".pay.prod.x",
	} {
		c.create(local, 0)
	}
}

// TestAttackShadowingNamespace checks that no namespace can be created that would divert the clients of
// existing topics, and that the error lists these topics, but not in its text.
func TestAttackShadowingNamespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	team := names.Namespace{Tenant: "team", Name: "one"}
	c.do(c.createNamespace(team))
	first := c.create("pay.prod.orders", 0)
	other := names.Topic{Namespace: team, Local: "pay.prod.more"}
	c.do(c.Catalogue.CreateTopic(t.Context(), other, messaging.NewTopic{}))
	err := c.createNamespace(payProd)
	var shadows *messaging.ShadowError
	if !errors.As(err, &shadows) || !errors.Is(err, messaging.ErrShadows) ||
		!slices.Equal(shadows.Topics, []names.Topic{first, other}) || strings.Contains(err.Error(), "orders") {
		t.Errorf("got %v with %+v, want %v with both topics", err, shadows, messaging.ErrShadows)
	}
	has, err := c.Catalogue.HasNamespace(t.Context(), payProd)
	c.do(err)
	successes := 0
	if has {
		successes++
	}
	tally.Attack(t, "create a namespace that diverts the clients of topics", 1, successes)
	c.do(c.createNamespace(names.Namespace{Tenant: "pay", Name: "pro"}))
	c.do(c.createNamespace(names.Namespace{Tenant: "pay.prod", Name: "orders"})) // no dotted name refers to it
	for _, name := range []names.Topic{first, other} {
		c.do(c.Catalogue.DeleteTopic(t.Context(), name, true))
	}
	c.do(c.createNamespace(payProd))
}

// TestAttackSquattingRace creates a topic and the namespace of its name at the same time, at two members:
// one of the two must fail.
func TestAttackSquattingRace(t *testing.T) {
	t.Parallel()
	a := newCluster(t, messaging.Options{})
	b := openOver(t, a.engine, messaging.Options{})
	const attempts = 50
	successes := 0
	a.do(a.Catalogue.CreateTenant(t.Context(), messaging.Tenant{Name: "pay"}))
	for i := range attempts {
		ns := names.Namespace{Tenant: "pay", Name: fmt.Sprint("n", i)}
		var both sync.WaitGroup
		var topicErr, namespaceErr error
		both.Go(func() {
			topicErr = a.Catalogue.CreateTopic(t.Context(), topic("pay."+ns.Name+".orders"), messaging.NewTopic{})
		})
		both.Go(func() { namespaceErr = b.Catalogue.CreateNamespace(t.Context(), ns, messaging.Policies{}) })
		both.Wait()
		switch {
		case topicErr == nil && namespaceErr == nil:
			successes++
		case topicErr != nil && !errors.Is(topicErr, messaging.ErrDottedName),
			namespaceErr != nil && !errors.Is(namespaceErr, messaging.ErrShadows),
			topicErr != nil && namespaceErr != nil:
			t.Errorf("got topic error %v and namespace error %v, want one of the two to succeed", topicErr,
				namespaceErr)
		}
	}
	tally.Attack(t, "create a topic and the namespace of its name at once", attempts, successes)
}

// TestShadowedTopicsOfEarlierVersions opens data that has both a namespace and a topic whose name begins
// with that of the namespace. The topic must stay usable.
func TestShadowedTopicsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	before := openOver(t, eng, messaging.Options{})
	name := before.create("pay.prod.orders", 0)
	before.subscribe(name, "s")
	before.produce(name, text("1"))
	before.do(before.Catalogue.CreateTenant(t.Context(), messaging.Tenant{Name: "pay"}))
	before.do(messagingtest.ShadowTopics(t.Context(), eng, "pay/prod"))

	c := openOver(t, eng, messaging.Options{})
	c.produce(name, text("2"))
	if got := c.receive(name, "s", 10); len(got) != 2 {
		t.Errorf("got %d messages, want 2", len(got))
	}
	c.subscribe(name, "another")
	c.do(c.Catalogue.UpdateNamespace(t.Context(), payProd, func(*messaging.Policies) error { return nil }))
	c.do(c.Catalogue.CreateTopic(t.Context(), names.Topic{Namespace: payProd, Local: "orders"}, messaging.NewTopic{}))
	c.do(c.Catalogue.DeleteTopic(t.Context(), name, true))
	wantErr(t, c.Catalogue.CreateTopic(t.Context(), name, messaging.NewTopic{}), messaging.ErrDottedName)
}
