package messagecmd

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"freshet.dev/client"
)

// TestPassOverProgress: a consumer waits while the server passes over messages, and ends when it makes no progress,
// or has nothing to evaluate.
func TestPassOverProgress(t *testing.T) {
	var progress passOverProgress
	start := time.Now()
	for _, step := range []struct {
		name                             string
		idle, now                        time.Duration // since the start
		backlog, leased, delayed, passed int64
		want                             bool
	}{
		{"first question", 0, 0, 10, 0, 0, 0, true},
		{"no progress yet", 0, passOverTimeout - 1, 10, 0, 0, 0, true},
		{"no progress for long", 0, passOverTimeout, 10, 0, 0, 0, false},
		{"progress", 0, 10 * time.Second, 10, 0, 0, 1, true},
		{"progress, the rest is leased", 0, 11 * time.Second, 5, 5, 0, 5, true},
		{"still leased", 0, 11*time.Second + leasedTimeout - 1, 5, 5, 0, 5, true},
		{"leased for long", 0, 11*time.Second + leasedTimeout, 5, 5, 0, 5, false},
		{"a message was received meanwhile", 19 * time.Second, 20 * time.Second, 5, 0, 0, 5, true},
		{"and then none", 19 * time.Second, 24 * time.Second, 5, 0, 0, 5, false},
		{"a restarted server counts from 0", 19 * time.Second, 25 * time.Second, 5, 0, 0, 0, true},
		{"the rest is delayed", 25 * time.Second, 25 * time.Second, 5, 0, 5, 0, false},
		{"leased and delayed", 25 * time.Second, 26 * time.Second, 5, 2, 3, 0, true},
		{"nothing is left", 25 * time.Second, 26 * time.Second, 0, 0, 0, 9, false},
	} {
		stats := client.SubscriptionStats{
			Backlog: step.backlog, Leased: step.leased, Delayed: step.delayed, FilterPassedOver: step.passed,
		}
		if got := progress.more(&stats, start.Add(step.idle), start.Add(step.now)); got != step.want {
			t.Errorf("%s: got %t, want %t", step.name, got, step.want)
		}
	}
}

// TestIdleTimer: the timer ends when nothing more may come, not before, and keeps the time of the last message
// over the waits in between.
func TestIdleTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked []time.Duration
		var ended time.Duration
		timer := newIdleTimer(time.Second, func(idleSince time.Time) bool {
			asked = append(asked, idleSince.Sub(start))
			return len(asked) < 4
		}, func() { ended = time.Since(start) })
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		timer.stop()
		time.Sleep(5 * time.Second)
		timer.restart()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 0, 7500 * time.Millisecond, 7500 * time.Millisecond}; !slices.Equal(asked, want) {
			t.Errorf("asked with %v, want %v", asked, want)
		}
		if want := 9500 * time.Millisecond; ended != want {
			t.Errorf("ended after %v, want %v", ended, want)
		}
	})
}

// TestIdleTimerAsks: a message that arrives while the timer asks whether there is more keeps it from ending.
func TestIdleTimerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		timer := newIdleTimer(time.Second, func(time.Time) bool {
			time.Sleep(time.Second)
			return false
		}, func() { ended = true })
		time.Sleep(1500 * time.Millisecond)
		timer.stop()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if ended {
			t.Error("ended while a message was handled")
		}
	})
}
