package registry

import (
	"context"
	"errors"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestTurnsOfOneObjectDoNotOverlap(t *testing.T) {
	t.Parallel()
	all := newTurns()
	ctx := request.WithNamespace(t.Context(), "acme")
	var wg sync.WaitGroup
	busy, done := false, 0 // held by the turn alone: the race detector would tell
	for range 50 {
		wg.Go(func() {
			end, err := all.take(ctx, "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer end()
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
		t.Errorf("%d of 50 had their turn, and %d objects are remembered", done, len(all.objects))
	}
}

func TestObjectsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	all := newTurns()
	for _, namespace := range []string{"acme", "other"} {
		for _, name := range []string{"a", "b"} {
			if _, err := all.take(request.WithNamespace(t.Context(), namespace), name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWhoeverLeavesGivesUpTheirTurn(t *testing.T) {
	t.Parallel()
	all := newTurns()
	end, err := all.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.take(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left gets %v", err)
	}
	end()
	again, err := all.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if len(all.objects) != 0 {
		t.Errorf("%d objects are remembered", len(all.objects))
	}
}
