package messaging_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

func TestSubscriptionPositions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	var ids []names.MessageID
	for i := range 5 {
		ids = append(ids, c.produce(name, text(strconv.Itoa(i))).ID)
	}
	for i, tc := range []struct {
		at   messaging.Position
		want int
	}{
		{messaging.Position{Kind: messaging.Latest}, 0},
		{messaging.Position{Kind: messaging.Earliest}, 5},
		{messaging.Position{Kind: messaging.AtID, ID: ids[2]}, 3},
		{messaging.Position{Kind: messaging.AfterID, ID: ids[2]}, 2},
		{messaging.Position{Kind: messaging.AtID, ID: names.EarliestID}, 5},
		{messaging.Position{Kind: messaging.AtID, ID: names.LatestID}, 0},
	} {
		sub := fmt.Sprint("s", i)
		c.do(c.Consumer.Subscribe(ctx, name, sub, tc.at, nil))
		if got := c.receive(name, sub, 10); len(got) != tc.want {
			t.Errorf("at %+v: got %d messages, want %d", tc.at, len(got), tc.want)
		}
		c.do(c.Consumer.Reset(ctx, name, sub, messaging.Position{Kind: messaging.Earliest}))
		c.do(c.Consumer.Reset(ctx, name, sub, messaging.Position{Kind: messaging.Skip, N: 4}))
		if got := c.receive(name, sub, 10); len(got) != 1 {
			t.Errorf("after skipping four: %d messages", len(got))
		}
	}
	wantErr(t, c.Consumer.Subscribe(ctx, name, "s0", messaging.Position{}, nil), messaging.ErrSubscriptionExists)
	wantErr(t, c.Consumer.Subscribe(ctx, name, "a/b", messaging.Position{}, nil), messaging.ErrName)
	foreign := names.MessageID{Ledger: 4711, Partition: -1}
	wantErr(t, c.Consumer.Subscribe(ctx, name, "x", messaging.Position{Kind: messaging.AtID, ID: foreign}, nil),
		messaging.ErrNoPosition)
	wantErr(t, c.Consumer.Reset(ctx, name, "s0", messaging.Position{Kind: messaging.AtID, ID: foreign}),
		messaging.ErrNoPosition)
	wantErr(t, c.Consumer.Reset(ctx, name, "nobody", messaging.Position{}), messaging.ErrNoSubscription)
}

func TestSubscribeCreatesTheTopic(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	c.do(c.Consumer.Subscribe(ctx, topic("new"), "s", messaging.Position{}, nil))
	if got, err := c.Catalogue.Topic(ctx, topic("new")); err != nil || got.Partitions != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.AutoTopicCreation = &messaging.AutoCreation{Allow: true, Partitions: 4}
		return nil
	}))
	c.do(c.Consumer.Subscribe(ctx, topic("wide"), "s", messaging.Position{}, nil))
	if got, err := c.Catalogue.Topic(ctx, topic("wide")); err != nil || got.Partitions != 4 {
		t.Errorf("got %+v, %v", got, err)
	}
	c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.AutoTopicCreation = &messaging.AutoCreation{}
		return nil
	}))
	wantErr(t, c.Consumer.Subscribe(ctx, topic("never"), "s", messaging.Position{}, nil), messaging.ErrNoAutoCreation)
	wantErr(t, c.Consumer.Subscribe(ctx, topic("never-partition-1"), "s", messaging.Position{}, nil),
		messaging.ErrNoTopic)
}

func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	wantErr(t, c.Consumer.Unsubscribe(ctx, name, "nobody", false), messaging.ErrNoSubscription)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Consumer.Receive(ctx, name, "s", messaging.ReceiveOptions{Wait: time.Minute})
		waiting <- err
	}()
	for { // until the consumer waits
		stats, err := c.Statistics.Stats(ctx, name)
		c.do(err)
		if stats.Subscriptions[0].Waiting == 1 {
			break
		}
	}
	wantErr(t, c.Consumer.Unsubscribe(ctx, name, "s", false), messaging.ErrSubscriptionBusy)
	wantErr(t, c.Catalogue.DeleteTopic(ctx, name, false), messaging.ErrTopicBusy)
	c.do(c.Consumer.Unsubscribe(ctx, name, "s", true))
	wantErr(t, <-waiting, messaging.ErrNoSubscription)
}

func TestPeekAndReadByID(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	start := time.Now().Truncate(time.Millisecond) // as precise as publish times are
	empty, err := c.Consumer.LastMessageID(ctx, name)
	if err != nil || empty.Entry != -1 {
		t.Errorf("last of an empty topic: %v, %v", empty, err)
	}
	var last names.MessageID
	for i := range 300 {
		last = c.produce(name, text(strconv.Itoa(i))).ID
	}
	first := c.receiveOne(name, "s")
	c.ack(name, "s", first.ID)
	for n, want := range map[int]string{1: "1", 2: "2", 299: "299"} {
		if got, err := c.Consumer.Peek(ctx, name, "s", n); err != nil || string(got.Payload) != want {
			t.Errorf("Peek(%d) = %q, %v; want %s", n, got.Payload, err, want)
		}
	}
	_, err = c.Consumer.Peek(ctx, name, "s", 300)
	wantErr(t, err, messaging.ErrNoMessage)
	if got, err := c.Consumer.LastMessageID(ctx, name); err != nil || got != last {
		t.Errorf("last = %v, %v; want %v", got, err, last)
	}
	if got, err := c.Consumer.Message(ctx, name, last); err != nil || string(got.Payload) != "299" {
		t.Errorf("message = %q, %v", got.Payload, err)
	}
	if got, err := c.Consumer.MessageIDAt(ctx, name, start); err != nil || got.Entry != 0 {
		t.Errorf("at start = %v, %v", got, err)
	}
	_, err = c.Consumer.MessageIDAt(ctx, name, time.Now().Add(time.Hour))
	wantErr(t, err, messaging.ErrNoMessage)
	c.create("wide", 2)
	c.subscribe(topic("wide"), "s")
	_, err = c.Consumer.Peek(ctx, topic("wide"), "s", 1)
	wantErr(t, err, messaging.ErrPartitioned)
}

func TestStats(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 2)
	c.subscribe(name, "s")
	for range 10 {
		c.produce(name, text("x"))
	}
	for _, m := range c.receive(name, "s", 4)[:3] {
		c.ack(name, "s", m.ID)
	}
	stats, err := c.Statistics.Stats(ctx, name)
	c.do(err)
	s := stats.Subscriptions[0]
	if stats.In.Messages != 10 || stats.In.Bytes != 10 || stats.Out.Messages != 4 || len(stats.Partitions) != 2 ||
		s.Backlog != 7 || s.Leased != 1 || s.Out.Messages != 4 || s.Acks.Messages != 3 || stats.Bytes() == 0 {
		t.Errorf("got %+v", stats)
	}
	var backlog uint64
	for p := range int32(2) {
		one, err := c.Statistics.Stats(ctx, name.WithPartition(p))
		c.do(err)
		if len(one.Partitions) != 1 {
			t.Fatalf("got %d partitions", len(one.Partitions))
		}
		backlog += one.Subscriptions[0].Backlog
	}
	if backlog != 7 {
		t.Errorf("backlogs of the partitions add up to %d", backlog)
	}
}
