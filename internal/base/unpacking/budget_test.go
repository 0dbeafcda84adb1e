package unpacking_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/unpacking"
	"freshet/test/tally"
)

// caller returns a context with a caller.
func caller(t *testing.T, organization, principal string) context.Context {
	t.Helper()
	return fairshare.WithCaller(t.Context(), fairshare.Caller{Organization: organization, Principal: principal})
}

// nothing is a pass that succeeds at once.
func nothing(*unpacking.Reservation) error { return nil }

// hold begins a call that holds bytes until the returned function is called.
func hold(ctx context.Context, b *unpacking.Budget, bytes int64) (release func()) {
	held, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.Do(ctx, bytes, func(*unpacking.Reservation) error {
			close(held)
			<-end
			return nil
		})
	}()
	<-held
	return func() {
		close(end)
		<-ended
	}
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := unpacking.New(400)
		release := hold(t.Context(), b, 300)
		began := time.Now()
		if err := b.Do(t.Context(), 100, nothing); !errors.Is(err, unpacking.ErrBusy) {
			t.Errorf("without free memory: got %v, want %v", err, unpacking.ErrBusy)
		}
		if waited := time.Since(began); waited < time.Second || waited > time.Minute {
			t.Errorf("waited %s, want a bounded wait", waited)
		}
		canceled, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Do(canceled, 100, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: got %v, want %v", err, context.DeadlineExceeded)
		}
		release()
		if err := b.Do(t.Context(), 100, nothing); err != nil {
			t.Errorf("with free memory: got %v, want no error", err)
		}
		if got := b.Stats(); got.Working != 0 || got.Rejected != 1 || got.WorkingLimit != 300 || got.CacheLimit != 100 {
			t.Errorf("got %+v, want nothing held, one rejected call, and limits of 300 and 100", got)
		}
	})
}

// TestGrowNeverWaits has a call need more memory than is free: it gives back what it has before it
// waits, and begins again with the larger amount.
func TestGrowNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := unpacking.New(400)
		release := hold(caller(t, "a", "x"), b, 200)
		passes, done := 0, make(chan error)
		go func() {
			done <- b.Do(caller(t, "b", "y"), 50, func(r *unpacking.Reservation) error {
				passes++
				return r.Grow(250)
			})
		}()
		synctest.Wait()
		if got := b.Stats().Working; passes != 1 || got != 200 {
			t.Errorf("after %d passes %d bytes are held, want 1 pass and 200 bytes", passes, got)
		}
		release()
		if err := <-done; err != nil || passes != 2 {
			t.Errorf("got %v after %d passes, want no error after 2", err, passes)
		}
		if got := b.Stats(); got.Working != 0 || got.Restarted != 1 {
			t.Errorf("got %+v, want nothing held and one restart", got)
		}
	})
}

// TestBatchLargerThanTheBudget unpacks a batch that needs more than the whole budget: it does so
// alone.
func TestBatchLargerThanTheBudget(t *testing.T) {
	t.Parallel()
	b := unpacking.New(400)
	err := b.Do(t.Context(), 10, func(r *unpacking.Reservation) error {
		if err := r.Grow(5000); err != nil {
			return err
		}
		if got := b.Stats().Working; got != 300 {
			t.Errorf("%d bytes are held, want all 300", got)
		}
		return nil
	})
	if err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// TestAttackUnpackBudget has one organization take all memory that it gets, and keep it. Another
// organization, and another principal of the same one, still get memory at once.
func TestAttackUnpackBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := unpacking.New(4000)
		attacker, cancel := context.WithCancel(caller(t, "a", "x"))
		end := make(chan struct{})
		for range 100 {
			go func() {
				_ = b.Do(attacker, 100, func(*unpacking.Reservation) error {
					<-end
					return nil
				})
			}()
		}
		synctest.Wait()
		succeeded := 0
		for _, victim := range []context.Context{caller(t, "b", "y"), caller(t, "a", "z")} {
			began := time.Now()
			if err := b.Do(victim, 100, nothing); err != nil || time.Since(began) > 0 {
				succeeded++
				t.Errorf("%v: got %v after %s, want memory at once", fairshare.CallerOf(victim), err, time.Since(began))
			}
		}
		cancel()
		close(end)
		synctest.Wait()
		tally.Attack(t, "principal that takes all memory to unpack batches", 2, succeeded)
	})
}
