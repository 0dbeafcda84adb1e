package store

import (
	"context"
	"errors"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestChangesOfOneObjectDoNotOverlap(t *testing.T) {
	t.Parallel()
	all := newObjectLocks()
	ctx := request.WithNamespace(t.Context(), "acme")
	var wg sync.WaitGroup
	busy, done := false, 0 // guarded by the lock alone: the race detector would tell
	for range 50 {
		wg.Go(func() {
			unlock, err := all.lock(ctx, "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if busy {
				t.Error("two at once")
			}
			busy = true
			done++
			busy = false
		})
	}
	wg.Wait()
	if done != 50 || len(all.objects) != 0 {
		t.Errorf("%d of 50 held the lock, and %d objects are remembered", done, len(all.objects))
	}
}

func TestObjectsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	all := newObjectLocks()
	for _, namespace := range []string{"acme", "other"} {
		for _, name := range []string{"a", "b"} {
			if _, err := all.lock(request.WithNamespace(t.Context(), namespace), name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWhoeverLeavesWaitsNoMore(t *testing.T) {
	t.Parallel()
	all := newObjectLocks()
	unlock, err := all.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.lock(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left gets %v", err)
	}
	unlock()
	again, err := all.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if len(all.objects) != 0 {
		t.Errorf("%d objects are remembered", len(all.objects))
	}
}
