package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/retry"
)

var errStopping = errors.New("server is stopping")

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := retry.Sleep(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %s, want no error after a minute", err, time.Since(start))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errStopping) })
		start = time.Now()
		for range 2 { // the second call finds an ended context
			if err := retry.Sleep(ctx, time.Minute); !errors.Is(err, errStopping) || time.Since(start) != time.Second {
				t.Errorf("got %v after %s, want %v after a second", err, time.Since(start), errStopping)
			}
		}
		if err := retry.Sleep(ctx, 0); !errors.Is(err, errStopping) {
			t.Errorf("no time and an ended context: got %v, want %v", err, errStopping)
		}
	})
}

func TestWaitEndsWithItsSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signal, start := make(chan struct{}), time.Now()
		time.AfterFunc(time.Second, func() { close(signal) })
		for range 2 {
			if err := retry.Wait(t.Context(), signal, time.Minute); err != nil || time.Since(start) != time.Second {
				t.Errorf("got %v after %s, want no error after a second", err, time.Since(start))
			}
		}
	})
}

func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		var runs []time.Duration
		for range retry.Every(ctx, time.Minute) {
			runs = append(runs, time.Since(start))
			switch len(runs) {
			case 1:
				time.Sleep(20 * time.Second) // the time that the body takes counts
			case 2:
				time.Sleep(150 * time.Second) // misses one run
			case 4:
				time.Sleep(time.Minute) // the next run is due, but the context has ended
				cancel()
			}
		}
		want := []time.Duration{time.Minute, 2 * time.Minute, 270 * time.Second, 5 * time.Minute}
		if !slices.Equal(runs, want) {
			t.Errorf("got runs after %v, want after %v", runs, want)
		}
		for range retry.Every(ctx, time.Minute) {
			t.Error("the body ran although the context had ended before")
		}
	})
}

func TestBreakEndsEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		for range retry.Every(t.Context(), time.Minute) {
			if runs++; runs == 2 {
				break
			}
		}
		if runs != 2 {
			t.Errorf("got %d runs, want 2", runs)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		backoff retry.Backoff
		want    []time.Duration
	}{
		{"constant", retry.Backoff{Min: 3}, []time.Duration{3, 3, 3}},
		{"doubles up to its limit", retry.Backoff{Min: 3, Max: 10}, []time.Duration{3, 6, 10, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				var got []time.Duration
				for range c.want {
					got = append(got, c.backoff.Next())
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
				c.backoff.Reset()
			}
		})
	}
	jittered := retry.Backoff{Min: time.Second, Jitter: 0.5}
	different := map[time.Duration]bool{}
	for range 100 {
		d := jittered.Next()
		if d < time.Second/2 || d > time.Second {
			t.Fatalf("with jitter: got %s, want between half a second and a second", d)
		}
		different[d] = true
	}
	if len(different) < 10 {
		t.Errorf("with jitter: got %d different times of 100, want many", len(different))
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	failure := errors.New("not yet")
	synctest.Test(t, func(t *testing.T) {
		start, attempts := time.Now(), 0
		err := retry.Do(t.Context(), retry.Backoff{Min: time.Second, Max: time.Minute}, func() (bool, error) {
			attempts++
			return attempts < 4, nil
		})
		if err != nil || attempts != 4 || time.Since(start) != 7*time.Second {
			t.Errorf("got %v, %d attempts in %s, want 4 in 7 seconds", err, attempts, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		attempts = 0
		err = retry.Do(ctx, retry.Backoff{Min: time.Minute}, func() (bool, error) {
			attempts++
			return true, failure
		})
		if !errors.Is(err, failure) || attempts != 2 {
			t.Errorf("until the context ends: got %v after %d attempts, want %v after 2", err, attempts, failure)
		}
	})
}
