package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// shareHistory is what share consumers have received and accepted.
type shareHistory struct {
	mu       sync.Mutex
	seen     map[string]bool
	accepted map[string]bool // the server has confirmed it
	again    int             // deliveries after the confirmation
}

func (h *shareHistory) received(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[value] = true
	if h.accepted[value] {
		h.again++
	}
}

func (h *shareHistory) confirmed(values []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, value := range values {
		h.accepted[value] = true
	}
}

// counts returns the number of records that consumers have received, and of those whose acceptance is
// confirmed. These are fewer: a kill leaves it unknown whether the server has carried out an acceptance.
func (h *shareHistory) counts() (received, confirmed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen), len(h.accepted)
}

// consumer opens a share consumer, and returns a function that accepts records until its context ends.
func (h *shareHistory) consumer(t *testing.T, s *testserver.Server) func(context.Context) {
	t.Helper()
	var failures atomic.Int64
	c := client(t, s, kgo.ShareGroup("workers"), kgo.ConsumeTopics("jobs"), kgo.ShareMaxRecords(50),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if results.Error() != nil {
				failures.Add(1)
			}
		}))
	return func(ctx context.Context) {
		for ctx.Err() == nil {
			before := failures.Load()
			var values []string
			c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				h.received(string(r.Value))
				values = append(values, string(r.Value))
				r.Ack(kgo.AckAccept)
			})
			if err := c.FlushAcks(ctx); err == nil && failures.Load() == before {
				h.confirmed(values)
			}
		}
	}
}

// TestFaultKillShareGroup kills the server under share consumers. No record is lost, and none is delivered after the
// server has confirmed that it was accepted.
func TestFaultKillShareGroup(t *testing.T) {
	t.Parallel()
	const records = 6000
	kills := 3
	if tally.Long() {
		kills = 15
	}
	dir := t.TempDir()
	s := start(t, testserver.Options{DataDir: dir})
	address := s.Kafka // clients cache it
	fault := tally.Fault{Name: "kill -9 under share consumers"}
	setup := client(t, s)
	if _, err := kadm.NewClient(setup).CreateTopic(t.Context(), 3, 1, nil, "jobs"); err != nil {
		t.Fatal(err)
	}
	startAtFirst(t, setup, "workers")
	h := &shareHistory{seen: map[string]bool{}, accepted: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var consumers sync.WaitGroup
	for range 3 {
		consume := h.consumer(t, s)
		consumers.Go(func() { consume(ctx) })
	}
	for n := range records {
		record := &kgo.Record{Topic: "jobs", Value: fmt.Append(nil, n)}
		setup.Produce(t.Context(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("producing: %v", err)
			}
		})
	}
	if err := setup.Flush(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range kills {
		_, before := h.counts()
		await(t, func() bool {
			received, confirmed := h.counts()
			return confirmed >= before+records/(2*kills) || received == records && confirmed > 0
		})
		s.Kill()
		fault.Injected++
		began := time.Now()
		s = start(t, testserver.Options{DataDir: dir, Args: []string{"--stream", address}})
		fault.Recovery = max(fault.Recovery, time.Since(began))
	}
	defer stop(t, s)
	await(t, func() bool { received, _ := h.counts(); return received == records })
	cancel()
	consumers.Wait()
	if len(h.accepted) == 0 {
		t.Error("the server has confirmed no acceptance, so that no delivery after one could be found")
	}
	fault.Checked, fault.Lost, fault.Wrong = records, records-len(h.seen), h.again
	fault.Record(t)
}

// await waits up to two minutes for a condition on what the consumers have received.
func await(t *testing.T, reached func() bool) {
	t.Helper()
	ctx := within(t, 2*time.Minute)
	for ticker := time.NewTicker(10 * time.Millisecond); !reached(); {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("share consumers make no progress")
		}
	}
}

// startAtFirst makes a share group start at the first record of a topic.
func startAtFirst(t *testing.T, c *kgo.Client, group string) {
	t.Helper()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", kadm.StringPtr("earliest")
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	if response, err := request.RequestWith(t.Context(), c); err != nil || response.Resources[0].ErrorCode != 0 {
		t.Fatalf("configuring the group: %+v, %v", response, err)
	}
}
