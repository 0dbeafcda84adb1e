package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/controlplane/reconcile"
)

func TestBackoffGrowsUpToABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b reconcile.Backoff
		if wait := b.Wait("u", 1); wait != 0 {
			t.Errorf("before any failure: %s", wait)
		}
		last := time.Duration(0)
		for i := 1; i <= 20; i++ {
			failures, delay := b.Failed("u", 1)
			if failures != i || delay < last || delay > 30*time.Second {
				t.Fatalf("failure %d: %d in a row, next in %s after %s", i, failures, delay, last)
			}
			if wait := b.Wait("u", 1); wait != delay {
				t.Errorf("to wait: %s, want %s", wait, delay)
			}
			last = delay
			time.Sleep(delay)
			if wait := b.Wait("u", 1); wait != 0 {
				t.Errorf("after the delay: %s", wait)
			}
		}
		if last != 30*time.Second {
			t.Errorf("ends at %s", last)
		}
	})
}

func TestBackoffIsForOneTry(t *testing.T) {
	t.Parallel()
	var b reconcile.Backoff
	b.Failed("u", 1)
	if b.Wait("u", 2) != 0 || b.Wait("v", 1) != 0 {
		t.Error("a new spec, or another object, waits")
	}
	if failures, _ := b.Failed("u", 2); failures != 1 {
		t.Errorf("a new spec begins with %d failures", failures)
	}
	b.Forget("u")
	if b.Wait("u", 2) != 0 {
		t.Error("what was forgotten waits")
	}
}
