package messaging_test

import (
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

func (c *cluster) usage(byTopic bool) messaging.Usage {
	c.t.Helper()
	f, err := c.Statistics.Usage(c.t.Context(), byTopic)
	c.do(err)
	return f
}

// TestUsage checks the usage by namespace and by topic after produce, receive, acknowledge and dead
// letters.
func TestUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, messaging.Options{})
		ctx := t.Context()
		orders := c.create("orders", 0)
		c.create("letters", 0)
		c.create("idle", 0)
		c.do(c.Consumer.Subscribe(ctx, orders, "s", messaging.Position{Kind: messaging.Earliest}, map[string]string{
			messaging.PropertyDeadLetterTopic: "persistent://public/default/letters",
			messaging.PropertyMaxRedeliver:    "1",
		}))
		start := time.Now().UnixMilli()
		for range 3 {
			_, err := c.Producer.Produce(ctx, orders, text("12345"))
			c.do(err)
		}
		got, err := c.Consumer.Receive(ctx, orders, "s", messaging.ReceiveOptions{Max: 2})
		c.do(err)
		if len(got) != 2 {
			t.Fatalf("got %d messages, want 2", len(got))
		}
		c.do(c.Consumer.Settle(ctx, orders, "s", messaging.Settlement{ID: got[0].ID, Action: messaging.Ack}))
		f := c.usage(true)
		if f.Tenants != 1 || f.Namespaces != 1 || f.Topics != 3 || len(f.ByNamespace) != 1 {
			t.Fatalf("got %+v, want 1 tenant, 1 namespace and 3 topics", f)
		}
		counts := messaging.Counters{
			ProducedMessages: 3, ProducedBytes: 15, DeliveredMessages: 2, DeliveredBytes: 10,
			Acknowledgements: 1,
		}
		ns := f.ByNamespace[0]
		if ns.Name != names.PublicDefault || ns.Counters != counts || ns.Backlog != 2 || ns.Leased != 1 ||
			ns.Oldest != start || ns.Stored == 0 {
			t.Errorf("got %+v, want %+v with a backlog of 2, 1 of it leased, since %d", ns, counts, start)
		}
		var found bool
		for _, topic := range f.ByTopic {
			if topic.Name == orders {
				found = topic.Counters == counts && topic.Gauges == ns.Gauges
			}
		}
		if !found {
			t.Errorf("got %+v, want the same numbers for topic orders", f.ByTopic)
		}
		// The second message is redelivered, then goes to the dead-letter topic.
		for id := got[1].ID; ; {
			c.do(c.Consumer.Settle(ctx, orders, "s", messaging.Settlement{ID: id, Action: messaging.Nack}))
			again, err := c.Consumer.Receive(ctx, orders, "s", messaging.ReceiveOptions{Max: 1})
			c.do(err)
			if len(again) == 0 || again[0].ID.Entry != id.Entry {
				break
			}
			id = again[0].ID
		}
		synctest.Wait()
		if ns := c.usage(false).ByNamespace[0]; ns.DeadLetters != 1 || ns.Backlog != 1 {
			t.Errorf("got %+v, want 1 dead letter and a backlog of 1", ns)
		}
	})
}

// TestUsageOfDroppedNamespaces checks that a deleted namespace has no usage.
func TestUsageOfDroppedNamespaces(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	space := names.Namespace{Tenant: "public", Name: "short"}
	c.do(c.Catalogue.CreateNamespace(ctx, space, messaging.Policies{}))
	name := names.Topic{Namespace: space, Local: "t"}
	c.do(c.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{}))
	_, err := c.Producer.Produce(ctx, name, text("x"))
	c.do(err)
	if f := c.usage(false); len(f.ByNamespace) != 1 || f.ByNamespace[0].ProducedMessages != 1 {
		t.Errorf("got %+v, want one message in one namespace", f.ByNamespace)
	}
	c.do(c.Catalogue.DeleteNamespace(ctx, space, true))
	if f := c.usage(true); len(f.ByNamespace) != 0 || len(f.ByTopic) != 0 {
		t.Errorf("got %+v, want no usage of a deleted namespace", f)
	}
}
