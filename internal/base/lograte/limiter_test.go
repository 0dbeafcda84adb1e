package lograte_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/lograte"
)

// warnings counts the warnings about an event that occurs every second.
func warnings(l *lograte.Limiter, key string, seconds int) (n int) {
	for range seconds {
		if l.Level(key) == slog.LevelWarn {
			n++
		}
		time.Sleep(time.Second) // of the bubble's clock
	}
	return n
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lograte.New(lograte.Policy{Interval: time.Minute})
		equal(t, "warnings in 150 seconds", warnings(l, "a", 150), 3)
		equal(t, "warnings right after", warnings(l, "a", 1), 0)
		equal(t, "warnings about another event", warnings(l, "b", 1), 1)
		l.Forget("a")
		equal(t, "warnings after Forget", warnings(l, "a", 1), 1)
	})
}

// TestAfterAndForget: a failure that ends within seconds causes no warning, a lasting one causes one
// warning every ten minutes.
func TestAfterAndForget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lograte.New(lograte.Policy{After: 10 * time.Second, Forget: 5 * time.Second, Interval: 10 * time.Minute})
		equal(t, "warnings in 8 seconds", warnings(l, "a", 8), 0)
		time.Sleep(10 * time.Second)
		equal(t, "warnings in a minute of a new failure", warnings(l, "a", 60), 1)
		equal(t, "warnings in ten more minutes", warnings(l, "a", 600), 1)
	})
}

func TestLinesAndDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lograte.New(lograte.Policy{Interval: time.Second, Lines: 3})
		lines := func(events int) (n int) {
			for range events {
				if ok, _ := l.Allow(""); ok {
					n++
				}
			}
			return n
		}
		equal(t, "lines of 10 events", lines(10), 3)
		time.Sleep(time.Second)
		ok, dropped := l.Allow("")
		equal(t, "line of the next second", ok, true)
		equal(t, "events without a line", dropped, 7)
		l.SetLines(5)
		equal(t, "lines of 10 more events", lines(10), 4)
	})
}

func TestChanged(t *testing.T) {
	t.Parallel()
	l := lograte.New(lograte.Policy{})
	for i, step := range []struct {
		text string
		want bool
	}{{"x", true}, {"x", false}, {"y", true}, {"x", true}, {"x", false}} {
		equal(t, fmt.Sprintf("step %d", i), l.Changed("a", step.text), step.want)
	}
	equal(t, "the same text of another key", l.Changed("b", "x"), true)
	l.Forget("a")
	equal(t, "the same text after Forget", l.Changed("a", "x"), true)
}

// TestKeys: the memory of a Limiter has a limit.
func TestKeys(t *testing.T) {
	t.Parallel()
	l := lograte.New(lograte.Policy{Keys: 2})
	for _, key := range []string{"a", "b", "a", "b"} {
		l.Level(key)
	}
	equal(t, "a known key", l.Level("a"), slog.LevelDebug)
	l.Level("c")
	equal(t, "a key that was forgotten for another", l.Level("a"), slog.LevelWarn)
}

func BenchmarkAllow(b *testing.B) {
	l := lograte.New(lograte.Policy{Interval: time.Second, Lines: 100})
	b.ReportAllocs()
	for b.Loop() {
		l.Allow("")
	}
}
