package kafkaapi_test

import (
	"fmt"
	"testing"

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
