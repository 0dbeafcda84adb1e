package messaging_test

import (
	"strconv"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

func TestPushConsumerCredits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	s, err := c.Consumer.OpenPushConsumer(ctx, name, "s", messaging.PushConsumerOptions{Credits: 2})
	c.do(err)
	defer s.Close()
	for i := range 5 {
		c.produce(name, text(strconv.Itoa(i)))
	}
	next := func(wait time.Duration) []messaging.Received {
		t.Helper()
		got, err := s.Next(ctx, wait)
		c.do(err)
		return got
	}
	first := next(time.Minute)
	if len(first) != 2 {
		t.Fatalf("got %d messages, want 2 for two credits", len(first))
	}
	if more := next(time.Millisecond); len(more) != 0 {
		t.Fatalf("got %d messages, want none without a credit", len(more))
	}
	acked := make(chan []messaging.Received)
	go func() {
		got, err := s.Next(ctx, time.Minute)
		if err != nil {
			t.Error(err)
		}
		acked <- got
	}()
	c.ack(name, "s", first[0].ID)
	if got := <-acked; len(got) != 1 || string(got[0].Payload) != "2" {
		t.Fatalf("after an ack: %v", got)
	}
	c.do(c.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: first[1].ID, Action: messaging.AckTo}))
	if got := next(time.Minute); len(got) != 1 || string(got[0].Payload) != "3" {
		t.Fatalf("after a cumulative ack: %v", got)
	}
	// Close releases the leases of unsettled messages immediately.
	c.do(s.Close())
	c.do(s.Close())
	back := c.receive(name, "s", 10)
	if len(back) != 3 {
		t.Errorf("got %d messages after Close, want 3", len(back))
	}
}

func TestPushConsumerCreditReturnsWithTheLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Limits: messaging.Limits{MinLease: time.Millisecond}})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	s, err := c.Consumer.OpenPushConsumer(ctx, name, "s",
		messaging.PushConsumerOptions{Credits: 1, Lease: 30 * time.Millisecond})
	c.do(err)
	defer s.Close()
	c.produce(name, text("a"))
	for i := range 3 {
		got, err := s.Next(ctx, time.Minute)
		c.do(err)
		if len(got) != 1 || got[0].Redeliveries != uint32(i) {
			t.Fatalf("delivery %d: %+v", i, got)
		}
	}
}

func TestPushConsumerEndsWhenDrained(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 2)
	c.subscribe(name, "s")
	s, err := c.Consumer.OpenPushConsumer(ctx, name, "s", messaging.PushConsumerOptions{})
	c.do(err)
	defer s.Close()
	tail, err := c.Consumer.Tail(ctx, name, messaging.TailFrom{})
	c.do(err)
	done := make(chan error, 2)
	go func() {
		_, err := s.Next(ctx, time.Minute)
		done <- err
	}()
	go func() {
		_, err := tail.Next(ctx, time.Minute)
		done <- err
	}()
	c.Drain()
	wantErr(t, <-done, messaging.ErrClosing)
	wantErr(t, <-done, messaging.ErrClosing)
}

func TestPushConsumerRejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	_, err := c.Consumer.OpenPushConsumer(t.Context(), name, "nobody", messaging.PushConsumerOptions{})
	wantErr(t, err, messaging.ErrNoSubscription)
	_, err = c.Consumer.OpenPushConsumer(t.Context(), name, "nobody", messaging.PushConsumerOptions{Credits: 1 << 20})
	wantErr(t, err, engine.ErrInvalid)
	_, err = c.Consumer.Tail(t.Context(), topic("none"), messaging.TailFrom{})
	wantErr(t, err, messaging.ErrNoTopic)
}

func TestTail(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int32{0, 3} {
		t.Run(strconv.Itoa(int(partitions)), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, messaging.Options{})
			ctx := t.Context()
			name := c.create("orders", partitions)
			c.subscribe(name, "s")
			var last names.MessageID
			for i := range 6 {
				last = c.produce(name, text(strconv.Itoa(i))).ID
			}
			collect := func(tail *messaging.Tail, n int) int {
				t.Helper()
				seen := 0
				for seen < n {
					got, err := tail.Next(ctx, 10*time.Second)
					c.do(err)
					if len(got) == 0 {
						break
					}
					seen += len(got)
				}
				return seen
			}
			all, err := c.Consumer.Tail(ctx, name, messaging.TailFrom{Earliest: true})
			c.do(err)
			if n := collect(all, 6); n != 6 {
				t.Errorf("from the earliest: %d messages", n)
			}
			since, err := c.Consumer.Tail(ctx, name, messaging.TailFrom{Since: time.Now().Add(-time.Hour)})
			c.do(err)
			if n := collect(since, 6); n != 6 {
				t.Errorf("since an hour ago: %d messages", n)
			}
			later, err := c.Consumer.Tail(ctx, name, messaging.TailFrom{Since: time.Now().Add(time.Hour)})
			c.do(err)
			if got, err := later.Next(ctx, time.Millisecond); err != nil || len(got) != 0 {
				t.Errorf("since a time in the future: %v, %v", got, err)
			}
			_, err = c.Consumer.Tail(ctx, name, messaging.TailFrom{After: &last})
			c.do(err)
			end, err := c.Consumer.Tail(ctx, name, messaging.TailFrom{})
			c.do(err)
			if got, err := end.Next(ctx, time.Millisecond); err != nil || len(got) != 0 {
				t.Errorf("after the last: %v, %v", got, err)
			}
			if partitions > 0 {
				c.do(c.Catalogue.GrowTopic(ctx, name, partitions+1))
			}
			go func() {
				_, err := c.Producer.Produce(ctx, name, text("new"))
				if err != nil {
					t.Error(err)
				}
			}()
			got, err := end.Next(ctx, 10*time.Second)
			if err != nil || len(got) != 1 || string(got[0].Payload) != "new" {
				t.Errorf("got %v, %v", got, err)
			}
			if got := c.receive(name, "s", 100); len(got) != 7 {
				t.Errorf("subscription has %d messages, want 7 because a tail leases none", len(got))
			}
		})
	}
}
