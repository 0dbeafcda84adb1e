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
	busy, done := false, 0 // protected by the lock only, so that the race detector finds overlaps
	for range 50 {
		wg.Go(func() {
			unlock, err := all.lock(ctx, "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if busy {
				t.Error("two calls hold the lock at the same time")
			}
			busy = true
			done++
			busy = false
		})
	}
	wg.Wait()
	if done != 50 || len(all.objects) != 0 {
		t.Errorf("%d calls held the lock and %d locks remain, want 50 and 0", done, len(all.objects))
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

func TestCanceledCallerStopsWaiting(t *testing.T) {
	t.Parallel()
	all := newObjectLocks()
	unlock, err := all.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.lock(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled caller: got error %v, want context.Canceled", err)
	}
	unlock()
	again, err := all.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if len(all.objects) != 0 {
		t.Errorf("%d locks remain, want 0", len(all.objects))
	}
}
