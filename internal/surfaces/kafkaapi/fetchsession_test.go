package kafkaapi_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire opens a connection that sends raw requests.
func (w *harness) wire(token string) *rawClient {
	w.Helper()
	r := &rawClient{harness: w, token: token, responses: make(map[int16]int)}
	r.open()
	w.Cleanup(r.close)
	return r
}

// roundTrip sends a request and fails the test without a response.
func roundTrip[Response kmsg.Response](r *rawClient, request kmsg.Request) Response {
	r.Helper()
	response, err := r.exchange(request, nil)
	if err != nil {
		r.Fatalf("key %d version %d: %v", request.Key(), request.GetVersion(), err)
	}
	typed, _ := response.(Response)
	return typed
}

// fetchFrom returns a Fetch request of a session; from contains the offsets of partitions by topic.
func fetchFrom(session, epoch int32, from map[string][]int64) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.SessionID, r.SessionEpoch, r.MaxBytes = 12, session, epoch, 1<<20
	for topic, offsets := range from {
		t := kmsg.NewFetchRequestTopic()
		t.Topic = topic
		for i, offset := range offsets {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(i), offset, 1<<20
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

// summary lists the partitions of a response and their bytes.
func summary(r *kmsg.FetchResponse) (all []string) {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			all = append(all, fmt.Sprintf("%s-%d code %d records %t end %d", r.Topics[i].Topic, p.Partition,
				p.ErrorCode, len(p.RecordBatches) > 0, p.HighWatermark))
		}
	}
	return all
}

func (w *harness) partitioned(topic string, partitions int32) {
	w.Helper()
	if _, err := kadm.NewClient(w.client()).CreateTopic(short(w.T), partitions, 1, nil, topic); err != nil {
		w.Fatal(err)
	}
}

func (w *harness) send(topic string, partition int32, value string) {
	w.Helper()
	producer := w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	w.ok(producer.ProduceSync(short(w.T),
		&kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}).FirstErr())
}

func wantSummary(t *testing.T, what string, got *kmsg.FetchResponse, want ...string) {
	t.Helper()
	if g := summary(got); got.ErrorCode != 0 || fmt.Sprint(g) != fmt.Sprint(want) {
		t.Errorf("%s: got code %d, %q; want %q", what, got.ErrorCode, g, want)
	}
}

// TestFetchSession checks that requests of a session contain only changes, and responses only news.
func TestFetchSession(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 3)
	w.send("orders", 1, "a")
	r := w.wire(w.token)
	first := roundTrip[*kmsg.FetchResponse](r, fetchFrom(0, 0, map[string][]int64{"orders": {0, 0, 0}}))
	id := first.SessionID
	if id == 0 {
		t.Fatal("got no session, want one")
	}
	wantSummary(t, "first request", first, "orders-0 code 0 records false end 0", "orders-1 code 0 records true end 1",
		"orders-2 code 0 records false end 0")
	next := roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 1, map[string][]int64{"orders": {0, 1}}))
	wantSummary(t, "nothing new", next)
	w.send("orders", 2, "b")
	wantSummary(t, "one record", roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 2, nil)),
		"orders-2 code 0 records true end 1")
	wantSummary(t, "the same, not read on", roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 3, nil)),
		"orders-2 code 0 records true end 1")

	forget := fetchFrom(id, 4, nil)
	forget.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "orders", Partitions: []int32{2, 7}}}
	wantSummary(t, "forgotten", roundTrip[*kmsg.FetchResponse](r, forget))
	w.send("orders", 1, "c")
	again := roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 5, map[string][]int64{"unknown": {0}}))
	wantSummary(t, "one more topic", again, "orders-1 code 0 records true end 2",
		"unknown-0 code 3 records false end -1")
	wantSummary(t, "errors are reported again",
		roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 6, map[string][]int64{"orders": {0, 2}})),
		"unknown-0 code 3 records false end -1")

	for what, tc := range map[string]struct {
		request *kmsg.FetchRequest
		want    int16
	}{
		"an epoch again":      {fetchFrom(id, 6, nil), 71},
		"an epoch too far":    {fetchFrom(id, 8, nil), 71},
		"below all epochs":    {fetchFrom(id, -2, nil), 71},
		"another session":     {fetchFrom(id+1, 7, nil), 70},
		"no session at all":   {fetchFrom(0, 7, nil), 70},
		"by id, not by name ": {byID(fetchFrom(id, 7, nil)), 106},
	} {
		if got := roundTrip[*kmsg.FetchResponse](r, tc.request); got.ErrorCode != tc.want || got.SessionID != 0 ||
			len(got.Topics) > 0 {
			t.Errorf("%s: got code %d, session %d and %d topics, want only code %d", what, got.ErrorCode,
				got.SessionID, len(got.Topics), tc.want)
		}
	}
	wantSummary(t, "after wrong ones", roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 7, nil)),
		"unknown-0 code 3 records false end -1")
	if got := roundTrip[*kmsg.FetchResponse](w.wire(w.token), fetchFrom(id, 8, nil)); got.ErrorCode != 70 {
		t.Errorf("session of another connection: got code %d, want 70", got.ErrorCode)
	}
	end := roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, -1, map[string][]int64{"orders": {0}}))
	wantSummary(t, "without a session", end, "orders-0 code 0 records false end 0")
	if got := roundTrip[*kmsg.FetchResponse](r, fetchFrom(id, 8, nil)); end.SessionID != 0 || got.ErrorCode != 70 {
		t.Errorf("session that was ended: got id %d, then code %d; want 0, 70", end.SessionID, got.ErrorCode)
	}
}

func byID(r *kmsg.FetchRequest) *kmsg.FetchRequest {
	r.Version = 17
	return r
}

// TestFetchSessionGivesAllATurn checks that neither of two partitions with more records than fit
// into a response starves.
func TestFetchSessionGivesAllATurn(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 2)
	w.send("orders", 0, "a")
	w.send("orders", 1, "b")
	r := w.wire(w.token)
	var turns []int32
	id, from := int32(0), map[string][]int64{"orders": {0, 0}}
	for epoch := range int32(4) {
		request := fetchFrom(id, epoch, from)
		request.MaxBytes, from = 1, nil
		got := roundTrip[*kmsg.FetchResponse](r, request)
		id = got.SessionID
		for i := range got.Topics {
			for _, p := range got.Topics[i].Partitions {
				if len(p.RecordBatches) > 0 {
					turns = append(turns, p.Partition)
				}
			}
		}
	}
	if want := []int32{0, 1, 0, 1}; fmt.Sprint(turns) != fmt.Sprint(want) {
		t.Errorf("got records of partitions %v, want %v", turns, want)
	}
}

// TestFetchSessionBounds checks that requests over the limits of sessions are served without one.
func TestFetchSessionBounds(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	r := w.wire(w.token)
	many := fetchFrom(0, 0, map[string][]int64{"orders": make([]int64, 10_001)})
	if got := roundTrip[*kmsg.FetchResponse](r, many); got.ErrorCode != 0 || got.SessionID != 0 ||
		len(got.Topics[0].Partitions) != 10_001 {
		t.Errorf("10,001 partitions: got code %d, session %d; want a response without a session", got.ErrorCode,
			got.SessionID)
	}
	small := roundTrip[*kmsg.FetchResponse](r, fetchFrom(0, 0, map[string][]int64{"orders": {0}}))
	if got := roundTrip[*kmsg.FetchResponse](r,
		fetchFrom(small.SessionID, 1, map[string][]int64{"orders": make([]int64, 10_001)})); got.ErrorCode != 70 {
		t.Errorf("session that grows over the limit: got code %d, want 70", got.ErrorCode)
	}
	for range 4 { // memory is counted and released
		if got := roundTrip[*kmsg.FetchResponse](r,
			fetchFrom(0, 0, map[string][]int64{"orders": make([]int64, 9_000)})); got.SessionID == 0 {
			t.Error("9,000 partitions: got no session, want one")
		}
	}
	if got := roundTrip[*kmsg.FetchResponse](r,
		fetchFrom(0, 0, map[string][]int64{"orders": make([]int64, 100_001)})); got.ErrorCode != 42 {
		t.Errorf("100,001 partitions: got code %d, want 42", got.ErrorCode)
	}
}
