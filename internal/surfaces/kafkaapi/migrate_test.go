package kafkaapi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestLiveGroupChangesProtocol checks with franz-go that members of both protocols share the partitions of one
// group, whichever protocol came first, and that the remaining members get the partitions of those that leave.
func TestLiveGroupChangesProtocol(t *testing.T) {
	t.Parallel()
	for name, classicFirst := range map[string]bool{"upgrade": true, "downgrade": false} {
		for _, balancer := range []kgo.GroupBalancer{kgo.CooperativeStickyBalancer(), kgo.RangeBalancer()} {
			t.Run(fmt.Sprint(name, " ", balancer.ProtocolName()), func(t *testing.T) {
				t.Parallel()
				w := newHarness(t)
				w.partitioned("shared", 4)
				modern := func() (*kgo.Client, *assignedPartitions) {
					return w.consumer("g", kgo.ConsumeTopics("shared"))
				}
				classic := func() (*kgo.Client, *assignedPartitions) { return w.classicConsumer("g", balancer) }
				open := []func() (*kgo.Client, *assignedPartitions){modern, classic}
				if classicFirst {
					open[0], open[1] = classic, modern
				}
				first, firstHas := open[0]()
				firstHas.wait(t, 4)
				second, secondHas := open[1]()
				secondHas.wait(t, 2)
				firstHas.wait(t, 2)
				w.send("shared", 0, "one")
				w.send("shared", 3, "two")
				got := append(poll(t, first, 1), poll(t, second, 1)...)
				if len(got) != 2 {
					t.Errorf("got %d records, want one for each member", len(got))
				}
				for _, client := range []*kgo.Client{first, second} {
					w.ok(client.CommitUncommittedOffsets(short(t)))
				}
				first.LeaveGroup()
				secondHas.wait(t, 4)
				second.LeaveGroup()
			})
		}
	}
}

// classicConsumer opens a client with the classic protocol that consumes topic shared.
func (w *harness) classicConsumer(group string, balancer kgo.GroupBalancer) (*kgo.Client, *assignedPartitions) {
	w.Helper()
	h := newAssignedPartitions()
	changes := func(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { h.set(parts, has) }
	}
	return w.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics("shared"), kgo.Balancers(balancer), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(50*time.Millisecond),
		kgo.SessionTimeout(6*time.Second), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.OnPartitionsAssigned(changes(true)), kgo.OnPartitionsRevoked(changes(false)),
		kgo.OnPartitionsLost(changes(false)),
	), h
}
