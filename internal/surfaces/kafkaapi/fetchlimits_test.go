package kafkaapi_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestFetchWithoutBytes(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 2)
	for _, value := range []string{"one", "two"} {
		w.send("a", 0, value)
		w.send("a", 1, value)
	}
	wire := w.wire(w.token)
	one := fetchFrom(0, -1, map[string][]int64{"a": {1, 2}})
	one.MaxBytes = 1 << 20
	size := len(roundTrip[*kmsg.FetchResponse](wire, one).Topics[0].Partitions[0].RecordBatches)
	for _, limit := range []int32{0, -1} {
		r := fetchFrom(0, -1, map[string][]int64{"a": {0, 0}})
		r.MaxBytes = limit
		got := roundTrip[*kmsg.FetchResponse](wire, r)
		wantSummary(t, fmt.Sprint("at most ", limit), got, "a-0 code 0 records true end 2", "a-1 code 0 records false end 2")
		if n := len(got.Topics[0].Partitions[0].RecordBatches); n != size {
			t.Errorf("at most %d: got %d bytes, want one batch of %d", limit, n, size)
		}
	}
}

func TestFetchChecksTheLastEpoch(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	w.send("a", 0, "one")
	wire := w.wire(w.token)
	for _, c := range []struct {
		offset        int64
		epoch         int32
		code          int16
		diverging     int32
		divergingFrom int64
		records       bool
	}{
		{0, 0, 0, -1, -1, true},
		{1, 0, 0, -1, -1, false},
		{5, 0, 0, 0, 1, false},
		{0, 7, kerr.OffsetOutOfRange.Code, -1, -1, false},
		{5, 7, kerr.OffsetOutOfRange.Code, -1, -1, false},
		{5, -1, kerr.OffsetOutOfRange.Code, -1, -1, false},
	} {
		r := fetchFrom(0, -1, map[string][]int64{"a": {c.offset}})
		r.Topics[0].Partitions[0].LastFetchedEpoch = c.epoch
		got := roundTrip[*kmsg.FetchResponse](wire, r).Topics[0].Partitions[0]
		if got.ErrorCode != c.code || got.DivergingEpoch.Epoch != c.diverging ||
			got.DivergingEpoch.EndOffset != c.divergingFrom || (len(got.RecordBatches) > 0) != c.records {
			t.Errorf("offset %d after epoch %d: got %+v, want %+v", c.offset, c.epoch, got, c)
		}
	}
}

func TestFetchNeedsTopicIDs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	r := fetchFrom(0, -1, map[string][]int64{"": {0}})
	r.Version = 13
	if got := roundTrip[*kmsg.FetchResponse](wire, r).Topics[0].Partitions[0]; got.ErrorCode != kerr.UnknownTopicID.Code {
		t.Errorf("got code %d, want %d", got.ErrorCode, kerr.UnknownTopicID.Code)
	}
}
