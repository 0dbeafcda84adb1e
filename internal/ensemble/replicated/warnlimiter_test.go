package replicated

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestWarnLimiter: a failure that ends within seconds causes no warning, a lasting one causes
// one warning every ten minutes.
func TestWarnLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g warnLimiter
		fails := func(seconds int) (warnings int) {
			for range seconds {
				if g.level() == slog.LevelWarn {
					warnings++
				}
				time.Sleep(time.Second) // of the bubble's clock
			}
			return warnings
		}
		if got := fails(8); got != 0 {
			t.Errorf("8 seconds: got %d warnings, want none", got)
		}
		time.Sleep(10 * time.Second)
		if got := fails(60); got != 1 {
			t.Errorf("a minute of a new failure: got %d warnings, want one", got)
		}
		if got := fails(600); got != 1 {
			t.Errorf("ten more minutes: got %d warnings, want one", got)
		}
	})
}
