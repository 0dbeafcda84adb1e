package streamapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFetchWaitsForEnough: less than a client wants at least is sent when its time
// is over, and not before; enough is sent as soon as it is there.
func TestFetchWaitsForEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.partitioned("slow", 2)
	w.send("slow", 0, "little")
	ask := func(least int32, patience time.Duration) (bytes int, took time.Duration) {
		request := fetchFrom(0, -1, map[string][]int64{"slow": {0, 0}})
		request.MinBytes, request.MaxWaitMillis = least, int32(patience.Milliseconds())
		began := time.Now()
		response := ask[*kmsg.FetchResponse](w.wire(w.token), request)
		for _, p := range response.Topics[0].Partitions {
			bytes += len(p.RecordBatches)
		}
		return bytes, time.Since(began)
	}
	if bytes, took := ask(1, time.Minute); bytes == 0 || took > 20*time.Second {
		t.Errorf("one byte: got %d after %s, want them at once", bytes, took)
	}
	for _, partition := range []int32{0, 1} { // with a partition that is empty, and without
		if bytes, took := ask(100_000, 300*time.Millisecond); bytes == 0 || took < 300*time.Millisecond {
			t.Errorf("more than there is: got %d after %s, want what there is after 300 ms", bytes, took)
		}
		w.send("slow", partition, "little")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if bytes, took := ask(5_000, time.Minute); bytes < 5_000 || took > 30*time.Second {
			t.Errorf("what comes meanwhile: got %d after %s, want 5000 as soon as they are there", bytes, took)
		}
	}()
	for range 10 {
		w.send("slow", 0, strings.Repeat("x", 600))
	}
	<-done
}
