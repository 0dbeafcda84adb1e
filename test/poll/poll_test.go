package poll_test

import (
	"testing"
	"testing/synctest"
	"time"

	"freshet/test/poll"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		took := poll.Until(t, time.Minute, "three checks", func() bool {
			checks++
			return checks == 3
		})
		if checks != 3 || took != 10*time.Millisecond {
			t.Errorf("got %d checks in %s, want 3 in 10 ms", checks, took)
		}
	})
}
