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
		if wait := b.Remaining("u", 1); wait != 0 {
			t.Errorf("delay before any failure: got %s, want 0", wait)
		}
		last := time.Duration(0)
		for i := 1; i <= 20; i++ {
			failures, delay := b.Failed("u", 1)
			if failures != i || delay < last || delay > 30*time.Second {
				t.Fatalf("failure %d: got %d in a row and delay %s after %s", i, failures, delay, last)
			}
			if wait := b.Remaining("u", 1); wait != delay {
				t.Errorf("remaining delay: got %s, want %s", wait, delay)
			}
			last = delay
			time.Sleep(delay)
			if wait := b.Remaining("u", 1); wait != 0 {
				t.Errorf("remaining delay after the delay: got %s, want 0", wait)
			}
		}
		if last != 30*time.Second {
			t.Errorf("longest delay: got %s, want 30s", last)
		}
	})
}

func TestBackoffIsForOneTry(t *testing.T) {
	t.Parallel()
	var b reconcile.Backoff
	b.Failed("u", 1)
	if b.Remaining("u", 2) != 0 || b.Remaining("v", 1) != 0 {
		t.Error("a new spec or another object is delayed, want no delay")
	}
	if failures, _ := b.Failed("u", 2); failures != 1 {
		t.Errorf("new spec: got %d failures, want 1", failures)
	}
	b.Forget("u")
	if b.Remaining("u", 2) != 0 {
		t.Error("forgotten object is delayed, want no delay")
	}
}
