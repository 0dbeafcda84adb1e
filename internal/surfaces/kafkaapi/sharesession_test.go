package kafkaapi_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
)

// Types of acknowledgements.
const (
	ackAccept  int8 = 1
	ackRelease int8 = 2
	ackReject  int8 = 3
	ackRenew   int8 = 4
)

// rawShare is a member of a share group that sends single requests.
type rawShare struct {
	*rawClient
	group, member string
	topic         [16]byte
	epoch         int32 // of the next request of the session
}

// rawShare joins a group as the administrator.
func (w *harness) rawShare(group, member, topic string) *rawShare {
	w.Helper()
	s := &rawShare{rawClient: w.wire(w.token), group: group, member: member, topic: w.topicID(topic)}
	join := kmsg.NewPtrShareGroupHeartbeatRequest()
	join.Version, join.GroupID, join.MemberID, join.SubscribedTopicNames = 1, group, member, []string{topic}
	if got := roundTrip[*kmsg.ShareGroupHeartbeatResponse](s.rawClient, join); got.ErrorCode != 0 {
		w.Fatalf("joining: code %d", got.ErrorCode)
	}
	return s
}

// fetchRequest returns a request for records of partition 0 in the next epoch of the session.
func (s *rawShare) fetchRequest(most int32) *kmsg.ShareFetchRequest {
	r := kmsg.NewPtrShareFetchRequest()
	r.Version, r.GroupID, r.MemberID, r.ShareSessionEpoch = 2, &s.group, &s.member, s.epoch
	r.MaxRecords, r.MaxBytes, r.ShareAcquireMode = most, 1<<20, 1 // exactly as many records
	if s.epoch == 0 {
		topic := kmsg.NewShareFetchRequestTopic()
		topic.TopicID, topic.Partitions = s.topic, []kmsg.ShareFetchRequestTopicPartition{{}}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func (s *rawShare) send(r *kmsg.ShareFetchRequest) *kmsg.ShareFetchResponse {
	s.Helper()
	s.epoch++
	return roundTrip[*kmsg.ShareFetchResponse](s.rawClient, r)
}

// fetch returns the ranges of records that it acquires, as first-last×count.
func (s *rawShare) fetch(most int32) (ranges []string) {
	s.Helper()
	return acquired(s.harness, s.send(s.fetchRequest(most)))
}

func acquired(w *harness, response *kmsg.ShareFetchResponse) (ranges []string) {
	w.Helper()
	if response.ErrorCode != 0 {
		w.Fatalf("fetching: code %d, %s", response.ErrorCode, deref(response.ErrorMessage))
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				w.Fatalf("fetching: code %d, %s", p.ErrorCode, deref(p.ErrorMessage))
			}
			for _, r := range p.AcquiredRecords {
				ranges = append(ranges, fmt.Sprintf("%d-%d×%d", r.FirstOffset, r.LastOffset, r.DeliveryCount))
			}
		}
	}
	return ranges
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ackBatch is a batch of acknowledgements.
type ackBatch = kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch

func acks(first, last int64, types ...int8) ackBatch {
	return ackBatch{FirstOffset: first, LastOffset: last, AcknowledgeTypes: types}
}

// ackRequest returns a request that acknowledges records of partition 0.
func (s *rawShare) ackRequest(epoch int32, batches ...ackBatch) *kmsg.ShareAcknowledgeRequest {
	r := kmsg.NewPtrShareAcknowledgeRequest()
	r.Version, r.GroupID, r.MemberID, r.ShareSessionEpoch = 2, &s.group, &s.member, epoch
	topic := kmsg.NewShareAcknowledgeRequestTopic()
	topic.TopicID = s.topic
	part := kmsg.NewShareAcknowledgeRequestTopicPartition()
	part.AcknowledgementBatches = batches
	topic.Partitions = append(topic.Partitions, part)
	r.Topics = append(r.Topics, topic)
	return r
}

// acknowledge returns the code for partition 0.
func (s *rawShare) acknowledge(batches ...ackBatch) int16 {
	s.Helper()
	response := roundTrip[*kmsg.ShareAcknowledgeResponse](s.rawClient, s.ackRequest(s.epoch, batches...))
	s.epoch++
	if response.ErrorCode != 0 {
		s.Fatalf("acknowledging: code %d, %s", response.ErrorCode, deref(response.ErrorMessage))
	}
	return response.Topics[0].Partitions[0].ErrorCode
}

func (s *rawShare) expect(got, want []string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("acquired %v, want %v", got, want)
	}
}

// TestShareSessionRules checks which requests of a session are rejected, and that a session belongs to its connection.
func TestShareSessionRules(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 3)
	s := w.rawShare("workers", "one", "jobs")
	top := func(want int16, what string, r kmsg.Request) {
		t.Helper()
		var code int16
		switch response := roundTrip[kmsg.Response](s.rawClient, r).(type) {
		case *kmsg.ShareFetchResponse:
			code = response.ErrorCode
		case *kmsg.ShareAcknowledgeResponse:
			code = response.ErrorCode
		}
		if code != want {
			t.Errorf("%s: code %d, want %d", what, code, want)
		}
	}
	s.epoch = 1
	top(122, "fetch without a session", s.fetchRequest(1))
	top(122, "acknowledgement without a session", s.ackRequest(1, acks(0, 0, ackAccept)))
	s.epoch = 0
	top(123, "acknowledgement that opens a session", s.ackRequest(0, acks(0, 0, ackAccept)))
	early := s.fetchRequest(1)
	early.Topics[0].Partitions[0].AcknowledgementBatches = []kmsg.ShareFetchRequestTopicPartitionAcknowledgementBatch{
		{AcknowledgeTypes: []int8{ackAccept}},
	}
	top(42, "first request with acknowledgements", early)
	illegal, nobody := "a/b", ""
	bad := s.fetchRequest(1)
	bad.GroupID = &illegal
	top(24, "group id that is no subscription name", bad)
	bad.GroupID, bad.MemberID = &s.group, &nobody
	top(42, "empty member id", bad)
	s.expect(s.fetch(2), []string{"0-1×1"})
	s.epoch = 7
	top(123, "fetch in a later epoch", s.fetchRequest(1))
	s.epoch = 1
	renewing := s.fetchRequest(1)
	renewing.IsRenewAck = true
	top(42, "renewing fetch", renewing)
	other := &rawShare{rawClient: w.wire(w.token), group: s.group, member: s.member, topic: s.topic, epoch: 1}
	if got := roundTrip[*kmsg.ShareFetchResponse](other.rawClient, other.fetchRequest(1)); got.ErrorCode != 122 {
		t.Errorf("session of another connection: code %d, want 122", got.ErrorCode)
	}
	other.epoch = 0
	other.expect(other.fetch(10), []string{"0-1×2", "2-2×1"}) // ends the first session, which releases its leases
	top(122, "session that another connection has replaced", s.fetchRequest(1))
}

// TestShareAcknowledgementRules checks that the acknowledgements of a partition are applied all or none, and only to
// records that the member has on lease.
func TestShareAcknowledgementRules(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 10)
	s, other := w.rawShare("workers", "one", "jobs"), w.rawShare("workers", "two", "jobs")
	s.expect(s.fetch(4), []string{"0-3×1"})
	other.expect(other.fetch(2), []string{"4-5×1"})
	const recordState, invalid = 121, 42
	for _, test := range []struct {
		name    string
		want    int16
		batches []ackBatch
	}{
		{"record of another member", recordState, []ackBatch{acks(0, 4, ackAccept)}},
		{"record that nobody has", recordState, []ackBatch{acks(0, 0, ackAccept), acks(9, 9, ackAccept)}},
		{"more records than anybody may have", recordState, []ackBatch{acks(0, 1<<60, ackAccept)}},
		{"all offsets as gaps", recordState, []ackBatch{acks(0, math.MaxInt64, 0)}},
		{"the last offsets as gaps", 0, []ackBatch{acks(math.MaxInt64-1, math.MaxInt64, 0)}},
		{"offsets after the last one", invalid, []ackBatch{acks(math.MaxInt64, math.MaxInt64, 0), acks(5, 5, 0)}},
		{"offsets out of order", invalid, []ackBatch{acks(2, 3, ackAccept), acks(0, 1, ackAccept)}},
		{"overlapping batches", invalid, []ackBatch{acks(0, 2, ackAccept), acks(2, 3, ackAccept)}},
		{"negative offset", invalid, []ackBatch{acks(-1, 0, ackAccept)}},
		{"last before first", invalid, []ackBatch{acks(1, 0, ackAccept)}},
		{"too few types", invalid, []ackBatch{acks(0, 3, ackAccept, ackAccept)}},
		{"no type", invalid, []ackBatch{acks(0, 3)}},
		{"unknown type", invalid, []ackBatch{acks(0, 3, 9)}},
		{"renewing without saying so", invalid, []ackBatch{acks(0, 3, ackRenew)}},
	} {
		if got := s.acknowledge(test.batches...); got != test.want {
			t.Errorf("%s: code %d, want %d", test.name, got, test.want)
		}
	}
	s.expect(s.fetch(1), []string{"6-6×1"}) // no rejected acknowledgement has released a record
	if got := s.acknowledge(acks(0, 3, ackAccept, ackRelease, ackReject, ackAccept), acks(6, 6, ackRelease)); got != 0 {
		t.Errorf("acknowledging: code %d", got)
	}
	if got := s.acknowledge(acks(0, 0, ackAccept)); got != recordState {
		t.Errorf("accepting twice: code %d, want %d", got, recordState)
	}
	s.expect(s.fetch(10), []string{"1-1×2", "6-6×2", "7-9×1"})
	// An acknowledgement over HTTP ends the lease.
	got, err := w.broker.Consumer.Subscriptions(t.Context(), topicNamed("jobs"))
	w.ok(err)
	if !slices.Contains(got, "workers") {
		t.Fatalf("subscriptions %v, want workers", got)
	}
	w.ok(w.broker.Consumer.Reset(t.Context(), topicNamed("jobs"), "workers",
		messaging.Position{Kind: messaging.Latest}))
	if got := s.acknowledge(acks(1, 1, ackAccept)); got != recordState {
		t.Errorf("accepting after the subscription was reset: code %d, want %d", got, recordState)
	}
}

// TestShareRenew checks that renewing keeps a record on lease, and that expired leases are refused.
func TestShareRenew(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.setGroupConfig("workers", "share.record.lock.duration.ms", "1000")
	w.sendNumbers("jobs", 2)
	s, other := w.rawShare("workers", "one", "jobs"), w.rawShare("workers", "two", "jobs")
	first := s.send(s.fetchRequest(2))
	s.expect(acquired(w, first), []string{"0-1×1"})
	if first.AcquisitionLockTimeoutMillis != 1000 {
		t.Errorf("locks last %d ms, want 1000", first.AcquisitionLockTimeoutMillis)
	}
	waiting := other.fetchRequest(1)
	waiting.MaxWaitMillis = 10_000
	got := make(chan []string, 1)
	go func() { got <- acquired(w, other.send(waiting)) }()
	for done := false; !done; {
		renew := s.ackRequest(s.epoch, acks(0, 0, ackRenew))
		renew.IsRenewAck = true
		response := roundTrip[*kmsg.ShareAcknowledgeResponse](s.rawClient, renew)
		s.epoch++
		if code := response.Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Fatalf("renewing: code %d", code)
		}
		select {
		case ranges := <-got:
			s.expect(ranges, []string{"1-1×2"}) // the one that was not renewed
			done = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	if code := s.acknowledge(acks(1, 1, ackAccept)); code != 121 {
		t.Errorf("accepting after the lease has expired: code %d, want 121", code)
	}
	if code := s.acknowledge(acks(0, 0, ackAccept)); code != 0 {
		t.Errorf("accepting the renewed record: code %d", code)
	}
}

// TestShareRelease checks that records become available when a session is closed, when the member leaves, and when the
// connection ends.
func TestShareRelease(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 1)
	other := w.rawShare("workers", "other", "jobs")
	other.expect(other.fetch(0), nil)
	count := 0
	check := func(what string) {
		t.Helper()
		count += 2
		request := other.fetchRequest(1)
		request.MaxWaitMillis = 10_000
		if got := acquired(w, other.send(request)); !slices.Equal(got, []string{fmt.Sprintf("0-0×%d", count)}) {
			t.Errorf("after %s: acquired %v, want delivery %d", what, got, count)
		}
		if code := other.acknowledge(acks(0, 0, ackRelease)); code != 0 {
			t.Errorf("after %s: releasing: code %d", what, code)
		}
	}
	s := w.rawShare("workers", "closes", "jobs")
	s.fetch(1)
	closing := s.fetchRequest(1)
	closing.ShareSessionEpoch = -1
	s.send(closing)
	check("closing the session")

	s = w.rawShare("workers", "leaves", "jobs")
	s.fetch(1)
	leave := kmsg.NewPtrShareGroupHeartbeatRequest()
	leave.Version, leave.GroupID, leave.MemberID, leave.MemberEpoch = 1, s.group, s.member, -1
	if got := roundTrip[*kmsg.ShareGroupHeartbeatResponse](w.wire(w.token), leave); got.ErrorCode != 0 {
		t.Errorf("leaving: code %d", got.ErrorCode)
	}
	check("leaving the group")

	s = w.rawShare("workers", "disconnects", "jobs")
	s.fetch(1)
	s.close()
	check("disconnecting")
}

// TestShareFetchBounds checks the bounds of a request: records, records of a range, and bytes.
func TestShareFetchBounds(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 9) // one batch
	producer := w.client(kgo.ProducerBatchMaxBytes(512 << 10))
	big := make([]byte, 300<<10)
	for range 4 {
		w.ok(producer.ProduceSync(short(t), &kgo.Record{Topic: "jobs", Value: big}).FirstErr())
	}
	s := w.rawShare("workers", "one", "jobs")
	request := s.fetchRequest(7)
	request.BatchSize = 3
	response := s.send(request)
	s.expect(acquired(w, response), []string{"0-2×1", "3-5×1", "6-6×1"})
	if n := len(response.Topics[0].Partitions[0].Records); n == 0 || n > 1<<10 {
		t.Errorf("got %d bytes of records, want one batch", n)
	}
	s.expect(s.fetch(0), nil)
	request = s.fetchRequest(100)
	request.MaxBytes = 700 << 10
	response = s.send(request)
	got := acquired(w, response)
	s.expect(got, []string{"7-10×1"}) // what does not fit is not counted as delivered
	if n := len(response.Topics[0].Partitions[0].Records); n > 700<<10 {
		t.Errorf("got %d bytes of records, want at most %d", n, 700<<10)
	}
	request = s.fetchRequest(100)
	request.MaxBytes = 1 // the first batch is returned whatever its size
	s.expect(acquired(w, s.send(request)), []string{"11-11×1"})
	s.expect(s.fetch(100), []string{"12-12×1"})
}

// TestShareWholeBatches checks that in the mode for batches a request acquires the rest of the last batch too, and
// nothing behind it.
func TestShareWholeBatches(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 9)
	w.sendNumbers("jobs", 5)
	s, other := w.rawShare("workers", "one", "jobs"), w.rawShare("workers", "two", "jobs")
	other.expect(other.fetch(1), []string{"0-0×1"})
	request := s.fetchRequest(2)
	request.ShareAcquireMode = 0
	s.expect(acquired(w, s.send(request)), []string{"1-8×1"})
	if code := other.acknowledge(acks(0, 0, ackRelease)); code != 0 {
		t.Errorf("releasing: code %d", code)
	}
	request = s.fetchRequest(1)
	request.ShareAcquireMode = 0
	s.expect(acquired(w, s.send(request)), []string{"0-0×2"})
	s.expect(s.fetch(100), []string{"9-13×1"}) // none of them counts an earlier delivery
}

// TestShareLimits checks that a member gets no more records than the limit on lease, and that an account cannot open
// more sessions than its limit.
func TestShareLimits(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 2500)
	s := w.rawShare("workers", "one", "jobs")
	s.expect(s.fetch(1_000_000), []string{"0-1999×1"})
	s.expect(s.fetch(1_000_000), nil)
	if code := s.acknowledge(acks(0, 1999, ackAccept)); code != 0 {
		t.Errorf("accepting: code %d", code)
	}
	s.expect(s.fetch(1_000_000), []string{"2000-2499×1"})

	request := s.fetchRequest(1)
	for p := range int32(1001) {
		request.Topics = append(request.Topics, kmsg.ShareFetchRequestTopic{
			TopicID: s.topic, Partitions: []kmsg.ShareFetchRequestTopicPartition{{Partition: p}},
		})
	}
	if got := s.send(request); got.ErrorCode != 133 {
		t.Errorf("session with too many partitions: code %d, want 133", got.ErrorCode)
	}
	for i := range 500 {
		c := &rawShare{rawClient: w.wire(w.token), group: s.group, member: fmt.Sprint(i), topic: s.topic}
		response := c.send(c.fetchRequest(0))
		if want := i == 499; (response.ErrorCode == 133) != want {
			t.Fatalf("session %d: code %d, want a rejection: %t", i+2, response.ErrorCode, want)
		}
	}
}

// TestShareWaits checks that a waiting fetch returns when a record is produced, and one that waits on several
// partitions too.
func TestShareWaits(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.shareTopic("workers", "jobs", 3)
	s := w.rawShare("workers", "one", "jobs")
	request := s.fetchRequest(10)
	request.Topics[0].Partitions = []kmsg.ShareFetchRequestTopicPartition{
		{Partition: 0}, {Partition: 1}, {Partition: 2},
	}
	request.MaxWaitMillis = 30_000
	got := make(chan []string, 1)
	go func() { got <- acquired(w, s.send(request)) }()
	producer := w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.ok(producer.ProduceSync(short(t), &kgo.Record{Topic: "jobs", Partition: 2, Value: []byte("x")}).FirstErr())
	select {
	case ranges := <-got:
		s.expect(ranges, []string{"0-0×1"})
	case <-time.After(20 * time.Second):
		t.Error("fetch did not return although a record was produced")
	}
}
