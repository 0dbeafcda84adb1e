package sarama_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// member is one consumer of a consumer group.
type member struct {
	group    sarama.ConsumerGroup
	setups   chan sarama.ConsumerGroupSession
	messages chan *sarama.ConsumerMessage
	commits  bool
	stop     func()
}

// Setup implements sarama.ConsumerGroupHandler.
func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.setups <- s
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler.
func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements sarama.ConsumerGroupHandler.
func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			if m.commits {
				s.MarkMessage(message, "")
				s.Commit()
			}
			m.messages <- message
		case <-s.Context().Done():
			return nil
		}
	}
}

// join starts a member of a consumer group. It commits each message unless AutoCommit is disabled.
func join(t *testing.T, c *sarama.Config, group string, topics ...string) *member {
	t.Helper()
	g, err := sarama.NewConsumerGroup(servers(), group, c)
	do(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{
		group: g, setups: make(chan sarama.ConsumerGroupSession, 100),
		messages: make(chan *sarama.ConsumerMessage, 1000),
		commits:  c.Consumer.Offsets.AutoCommit.Enable,
	}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := g.Consume(ctx, topics, m); err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) &&
				ctx.Err() == nil {
				t.Errorf("consume: %v", err)
				return
			}
		}
	})
	m.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(m.stop)
	return m
}

// claims waits until a member has the expected number of partitions.
func (m *member) claims(t *testing.T, topic string, want int) sarama.ConsumerGroupSession {
	t.Helper()
	for {
		s := within(t, m.setups, "an assignment")
		if len(s.Claims()[topic]) == want {
			return s
		}
	}
}

// TestGroup checks with each strategy that two members share four partitions, and that the
// remaining one continues at the offsets that the other had committed.
func TestGroup(t *testing.T) {
	t.Parallel()
	for _, strategy := range []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyRange(),
		sarama.NewBalanceStrategyRoundRobin(), sarama.NewBalanceStrategySticky(),
	} {
		t.Run(strategy.Name(), func(t *testing.T) {
			t.Parallel()
			topic, group := topic(t, "group", 4), unique("group")
			c := config(t)
			c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
			produce(t, topic, 4, "first")
			one := join(t, c, group, topic)
			one.claims(t, topic, 4)
			for range 4 {
				within(t, one.messages, "a record")
			}
			two := join(t, c, group, topic)
			first, second := one.claims(t, topic, 2), two.claims(t, topic, 2)
			if both := append(first.Claims()[topic],
				second.Claims()[topic]...); len(slices.Compact(slices.Sorted(slices.Values(both)))) != 4 {
				t.Errorf("members have %v, want each partition once", both)
			}
			produce(t, topic, 4, "second")
			seen := map[int32]string{}
			for range 2 {
				for _, m := range []*member{one, two} {
					r := within(t, m.messages, "a record")
					seen[r.Partition] = string(r.Value)
				}
			}
			if want := map[int32]string{0: "second", 1: "second", 2: "second", 3: "second"}; !maps.Equal(seen, want) {
				t.Errorf("got %v, want %v", seen, want)
			}
			two.stop()
			one.claims(t, topic, 4)
			produce(t, topic, 4, "third")
			for range 4 {
				if r := within(t, one.messages, "a record"); string(r.Value) != "third" {
					t.Errorf("after the other has left: got %q, want third", r.Value)
				}
			}
		})
	}
}

// TestStaticMember checks that a member that rejoins with its instance id gets its
// partitions without a rebalance.
func TestStaticMember(t *testing.T) {
	t.Parallel()
	topic, group := topic(t, "static", 4), unique("static")
	static := func(id string) *sarama.Config {
		c := config(t)
		c.Consumer.Group.InstanceId = id
		c.Consumer.Group.Session.Timeout = 20 * time.Second
		return c
	}
	stays := join(t, static("a"), group, topic)
	stays.claims(t, topic, 4)
	leaves := join(t, static("b"), group, topic)
	before := leaves.claims(t, topic, 2)
	stays.claims(t, topic, 2)
	leaves.stop()
	again := join(t, static("b"), group, topic)
	after := again.claims(t, topic, 2)
	if before.GenerationID() != after.GenerationID() || before.MemberID() == after.MemberID() ||
		!slices.Equal(before.Claims()[topic], after.Claims()[topic]) {
		t.Errorf("rejoined with generation %d, member %s, %v; before %d, %s, %v: want the same generation and "+
			"partitions, and a new member id",
			after.GenerationID(), after.MemberID(), after.Claims(), before.GenerationID(), before.MemberID(),
			before.Claims())
	}
	select {
	case s := <-stays.setups:
		t.Errorf("the other member was rebalanced to %v", s.Claims())
	default:
	}
	again.stop() // keeps its partitions until it is removed
	left, err := admin(t, config(t)).RemoveMemberFromConsumerGroup(group, []string{"b", "nobody"})
	if err != nil || left.Members[0].Err != sarama.ErrNoError || left.Members[1].Err != sarama.ErrUnknownMemberId {
		t.Errorf("removing static members: got %+v, %v; want success and %v", left, err, sarama.ErrUnknownMemberId)
	}
	stays.claims(t, topic, 4)
}

// TestOffsetManager stores offsets of a consumer group without being a member.
func TestOffsetManager(t *testing.T) {
	t.Parallel()
	topic, group := topic(t, "manager", 1), unique("manager")
	client, err := sarama.NewClient(servers(), config(t))
	do(t, err)
	closing(t, client)
	for _, want := range []int64{-1, 7} {
		manager, err := sarama.NewOffsetManagerFromClient(group, client)
		do(t, err)
		partition, err := manager.ManagePartition(topic, 0)
		do(t, err)
		got, metadata := partition.NextOffset()
		if want == -1 {
			want = sarama.OffsetOldest // without a committed offset the configured initial offset applies
		}
		if got != want || got == 7 && metadata != "note" {
			t.Errorf("offset: got %d with %q, want %d", got, metadata, want)
		}
		partition.MarkOffset(7, "note")
		manager.Commit()
		do(t, partition.Close())
		do(t, manager.Close())
	}
}
