package kafkaapi_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFetchWithoutBytes checks that a request for no bytes returns the first batch only.
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
		wantSummary(t, fmt.Sprint("at most ", limit), got,
			"a-0 code 0 records true end 2", "a-1 code 0 records false end 2")
		if n := len(got.Topics[0].Partitions[0].RecordBatches); n != size {
			t.Errorf("at most %d: got %d bytes, want one batch of %d", limit, n, size)
		}
	}
}

// TestFetchChecksTheLastEpoch checks the responses to a client that fetched its last record in an epoch
// which the leader does not have, or up to an offset which the leader does not have.
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

// TestFetchNeedsTopicIDs checks that versions with topic ids do not accept an empty one.
func TestFetchNeedsTopicIDs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	r := fetchFrom(0, -1, map[string][]int64{"": {0}})
	r.Version = 13
	want := kerr.UnknownTopicID.Code
	if got := roundTrip[*kmsg.FetchResponse](wire, r).Topics[0].Partitions[0]; got.ErrorCode != want {
		t.Errorf("got code %d, want %d", got.ErrorCode, want)
	}
}

// TestListOffsetsTimestamps checks the versions that introduced timestamps with a special meaning.
func TestListOffsetsTimestamps(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	w.send("a", 0, "one")
	wire := w.wire(w.token)
	list := func(version int16, times ...int64) *kmsg.ListOffsetsRequest {
		r := kmsg.NewPtrListOffsetsRequest()
		r.Version, r.ReplicaID = version, -1
		row := kmsg.NewListOffsetsRequestTopic()
		row.Topic = "a"
		for _, at := range times {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Timestamp, p.CurrentLeaderEpoch = at, -1
			row.Partitions = append(row.Partitions, p)
		}
		r.Topics = append(r.Topics, row)
		return r
	}
	for at, since := range map[int64]int16{-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 99, -100: 99, 0: 1} {
		for version := int16(1); version <= 10; version++ {
			want := int16(0)
			if version < since {
				want = kerr.UnsupportedVersion.Code
			}
			got := roundTrip[*kmsg.ListOffsetsResponse](wire, list(version, at)).Topics[0].Partitions[0]
			if got.ErrorCode != want || want != 0 && got.Offset != -1 {
				t.Errorf("timestamp %d in version %d: got %+v, want code %d", at, version, got, want)
			}
		}
	}
	if got := roundTrip[*kmsg.ListOffsetsResponse](wire, list(10, -1, -1)).Topics[0].Partitions; len(got) != 1 ||
		got[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("partition twice: got %+v, want one row with code 42", got)
	}
}

// TestLeaderEpochOfUnknownPartition checks that a partition is looked up before epochs are compared.
func TestLeaderEpochOfUnknownPartition(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	for _, epochs := range [][2]int32{{-1, 0}, {-1, 5}, {1, 0}, {1, 5}} {
		r := kmsg.NewPtrOffsetForLeaderEpochRequest()
		r.Version = 4
		row := kmsg.NewOffsetForLeaderEpochRequestTopic()
		row.Topic = "a"
		row.Partitions = []kmsg.OffsetForLeaderEpochRequestTopicPartition{
			{Partition: 9, CurrentLeaderEpoch: epochs[0], LeaderEpoch: epochs[1]},
		}
		r.Topics = append(r.Topics, row)
		got := roundTrip[*kmsg.OffsetForLeaderEpochResponse](wire, r).Topics[0].Partitions[0]
		if got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("epochs %v: got %+v, want code 3", epochs, got)
		}
	}
}
