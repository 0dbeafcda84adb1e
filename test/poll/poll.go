// Package poll waits in tests for a condition that no signal announces, such as the state of another
// process or of a background loop. Tests with a simulated clock use testing/synctest instead.
package poll

import (
	"testing"
	"time"
)

// interval is the time between two checks of a condition.
const interval = 5 * time.Millisecond

// Until waits until done returns true, and returns how long that took. It fails the test after the
// limit; what names the condition.
func Until(t testing.TB, limit time.Duration, what string, done func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done() {
		if time.Since(began) > limit {
			t.Fatalf("timeout after %s, want %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(began)
}
