package messaging_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

// newest returns the stored payloads that a tail from the newest n messages returns.
func (c *cluster) newest(name names.Topic, n int) (payloads []string) {
	c.t.Helper()
	tail, err := c.Consumer.Tail(c.t.Context(), name, messaging.TailFrom{Newest: n})
	c.do(err)
	for {
		got, err := tail.Next(c.t.Context(), 0)
		c.do(err)
		if len(got) == 0 {
			return payloads
		}
		for i := range got {
			payloads = append(payloads, string(got[i].Payload))
		}
	}
}

func TestTailOfTheNewest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	if got := c.newest(name, 3); len(got) != 0 {
		t.Errorf("empty topic: got %q, want nothing", got)
	}
	for i := range 10 {
		c.produce(name, text(strconv.Itoa(i)))
	}
	for n, want := range map[int][]string{1: {"9"}, 3: {"7", "8", "9"}, 10: nil, 1000: nil} {
		got := c.newest(name, n)
		if want == nil && (len(got) != 10 || got[0] != "0") || want != nil && !slices.Equal(got, want) {
			t.Errorf("newest %d: got %q, want %q", n, got, want)
		}
	}
}

// TestTailOfTheNewestOfPartitions: the newest messages are on few of the partitions, and one partition has
// only old ones.
func TestTailOfTheNewestOfPartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, messaging.Options{})
		name := c.create("orders", 5)
		for i := range 400 { // partition 4 is empty
			c.produce(name.WithPartition(int32(i%3)), text(fmt.Sprint("old ", i)))
		}
		c.produce(name.WithPartition(3), text("only"))
		time.Sleep(20 * time.Millisecond)
		var want []string
		for i := range 40 {
			want = append(want, fmt.Sprint("new ", i))
			c.produce(name.WithPartition(int32(i%2)), text(want[i]))
			time.Sleep(2 * time.Millisecond) // publish times differ
		}
		got := c.newest(name, 40)
		for _, payload := range append(want, "only", "old 398") {
			if !slices.Contains(got, payload) {
				t.Errorf("got no %q, want the newest 40 and the newest one of each partition", payload)
			}
		}
		if len(got) > 50 {
			t.Errorf("got %d messages, want 40 and few more", len(got))
		}
		if got := c.newest(name, 1000); len(got) != 441 {
			t.Errorf("newest 1000: got %d messages, want all 441", len(got))
		}
		if got := c.newest(name.WithPartition(1), 2); !slices.Equal(got, []string{"new 37", "new 39"}) {
			t.Errorf("newest 2 of a partition: got %q", got)
		}
	})
}

func TestTailOfTheNewestOfManyPartitions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 100)
	for i := range 300 {
		c.produce(name.WithPartition(int32(i%100)), text(strconv.Itoa(i)))
	}
	if got := c.newest(name, 150); len(got) != 200 {
		t.Errorf("got %d messages, want 2 of each partition", len(got))
	}
}
