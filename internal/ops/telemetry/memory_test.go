package telemetry

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestLimitForALiveHeap(t *testing.T) {
	for live, want := range map[uint64]int64{
		0: defaultLimit, 576 << 20: defaultLimit, 600 << 20: 832 << 20, 768 << 20: 1 << 30,
		maxLimitedHeap: 1408 << 20, maxLimitedHeap + 1: math.MaxInt64, 4 << 30: math.MaxInt64,
	} {
		if got := limitFor(live); got != want {
			t.Errorf("live heap of %d bytes: got a limit of %d, want %d", live, got, want)
		}
	}
}

// TestAfterCollections checks that the function runs after each of several collections.
func TestAfterCollections(t *testing.T) {
	var calls atomic.Int64
	afterCollections(func() { calls.Add(1) })
	for deadline := time.Now().Add(time.Minute); calls.Load() < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("got %d calls within a minute, want 3", calls.Load())
		}
		runtime.GC()
	}
	if liveHeap() == 0 {
		t.Error("live heap: got 0 bytes, want more")
	}
}
