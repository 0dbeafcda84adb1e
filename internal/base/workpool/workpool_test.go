package workpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/fairshare"
)

func as(t *testing.T, organization, principal string) context.Context {
	t.Helper()
	return WithCaller(t.Context(), Caller{Organization: organization, Principal: principal})
}

// occupied takes all permits of a lane until release is called.
func occupied(t *testing.T, p *Pool, at Lane) (release func()) {
	t.Helper()
	until := make(chan struct{})
	for range p.lanes[at].Capacity() {
		go func() {
			if err := p.Job(as(t, "acme", "greedy")).Do(at, func() error { <-until; return nil }); err != nil {
				t.Error(err)
			}
		}()
	}
	synctest.Wait()
	return func() {
		close(until)
		synctest.Wait()
	}
}

func TestSmallWorkNeverWaitsBehindLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New()
		release := occupied(t, p, Large)
		defer release()
		for range p.lanes[Large].MaxWaiting() {
			go func() { _ = p.Job(as(t, "acme", "greedy")).Do(Large, func() error { return nil }) }()
		}
		synctest.Wait()
		if err := p.Job(as(t, "acme", "modest")).Do(LaneOf(SmallBytes), func() error { return nil }); err != nil {
			t.Errorf("small work while large work waits: got error %v, want none", err)
		}
	})
}

// TestPermitsAreSharedFairly checks that permits are shared between organizations, and within each between
// its principals.
func TestPermitsAreSharedFairly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New()
		release := occupied(t, p, Huge) // which has one permit
		var served []string
		ask := func(organization, principal string) {
			go func() {
				err := p.Job(as(t, organization, principal)).Do(Huge, func() error {
					served = append(served, organization+"/"+principal)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for range 3 {
			ask("acme", "greedy")
		}
		ask("acme", "modest")
		ask("other", "one")
		ask("other", "one")
		release()
		want := []string{"other/one", "acme/modest", "other/one", "acme/greedy", "acme/greedy", "acme/greedy"}
		if !slices.Equal(served, want) {
			t.Errorf("got %q, want %q", served, want)
		}
		if !idle(p.lanes[Huge]) {
			t.Error("got permits that were not released, want none")
		}
	})
}

// idle reports whether no permit of a lane is held: only then another caller gets all of them.
func idle(lane *fairshare.Semaphore) bool {
	probe := Caller{Organization: "probe", Principal: "probe"}
	n, err := lane.Acquire(context.Background(), probe, lane.Capacity(), 0)
	if err != nil {
		return false
	}
	lane.Release(probe, n)
	return true
}

func TestWaitingIsBoundedAndEndsWithTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New()
		release := occupied(t, p, Large)
		ctx, cancel := context.WithCancel(as(t, "acme", "greedy"))
		failed := make(chan error, p.lanes[Large].MaxWaiting())
		for range p.lanes[Large].MaxWaiting() {
			go func() { failed <- p.Job(ctx).Do(Large, func() error { return nil }) }()
		}
		synctest.Wait()
		err := p.Job(ctx).Do(Large, func() error { return nil })
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint(p.lanes[Large].MaxWaiting())) {
			t.Errorf("one call over the limit: got error %v, want %v with the limit", err, ErrBusy)
		}
		cancel()
		for range p.lanes[Large].MaxWaiting() {
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("waiting call that was cancelled: got error %v, want %v", err, context.Canceled)
			}
		}
		release()
		if err := p.Job(as(t, "acme", "greedy")).Do(Large, func() error { return nil }); err != nil {
			t.Errorf("call after the lane was released: got error %v, want none", err)
		}
	})
}

// TestCallsReturnBeforeDetachedWork checks that a call returns before work that cannot be stopped, and
// that the work keeps its permit until it ends.
func TestCallsReturnBeforeDetachedWork(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(cancel func()){
		"the call ends":    func(cancel func()) { cancel() },
		"it takes so long": func(func()) { time.Sleep(maxTime) }, // simulated time
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := New()
				ctx, cancel := context.WithCancel(t.Context())
				job, until, done := p.Job(ctx), make(chan struct{}), make(chan error)
				go func() { done <- job.Do(Huge, func() error { <-until; return nil }) }()
				synctest.Wait()
				end(cancel)
				if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, ErrTooCostly) {
					t.Errorf("got error %v, want %v or %v", err, context.Canceled, ErrTooCostly)
				}
				if idle(p.lanes[Huge]) {
					t.Error("permit while the work runs: got it available, want it taken")
				}
				if job.Spend(1) == nil || job.Do(Small, func() error { return nil }) == nil {
					t.Error("Spend and Do of an ended job: got no error, want one")
				}
				close(until)
				synctest.Wait()
				if !idle(p.lanes[Huge]) {
					t.Error("permit after the work has ended: got it taken, want it available")
				}
				cancel()
			})
		})
	}
}

func TestSpend(t *testing.T) {
	t.Parallel()
	p := New()
	job := p.Job(t.Context())
	err := job.Do(Small, func() error {
		if err := job.Spend(smallSteps + 1); err != nil {
			return err
		}
		if job.lane != Large || !idle(p.lanes[Small]) {
			t.Errorf("after %d steps: got lane %d, want %d and the permit of the old lane available", job.steps,
				job.lane, Large)
		}
		return job.Spend(maxSteps)
	})
	if !errors.Is(err, ErrTooCostly) || !strings.Contains(err.Error(), fmt.Sprint(maxSteps)) {
		t.Errorf("Spend over the limit: got error %v, want %v with the limit", err, ErrTooCostly)
	}
	locked := p.Job(t.Context()).Locked()
	if err := locked.Do(Small, func() error { return locked.Spend(lockSteps + 1) }); !errors.Is(err, ErrLocked) {
		t.Errorf("much work in a locked job: got error %v, want %v", err, ErrLocked)
	}
	if err := locked.Do(Large, func() error { return nil }); !errors.Is(err, ErrLocked) {
		t.Errorf("large work in a locked job: got error %v, want %v", err, ErrLocked)
	}
	slow := p.Job(t.Context()).WithTimeLimit(1)
	if err := slow.Do(Small, func() error { return slow.Spend(1) }); !errors.Is(err, ErrTooCostly) {
		t.Errorf("work over the time limit: got error %v, want %v", err, ErrTooCostly)
	}
	if err := (*Job)(nil).Spend(maxSteps + 1); err != nil {
		t.Errorf("nil job: got error %v, want none", err)
	}
	for at := range p.lanes {
		if !idle(p.lanes[at]) {
			t.Errorf("lane %d: got permits that were not released, want none", at)
		}
	}
}

func TestAPanicIsAnError(t *testing.T) {
	t.Parallel()
	if err := New().Job(t.Context()).Do(Large, func() error { panic("oops") }); err == nil ||
		!strings.Contains(err.Error(), "oops") {
		t.Errorf("got error %v, want one with the value of the panic", err)
	}
}
