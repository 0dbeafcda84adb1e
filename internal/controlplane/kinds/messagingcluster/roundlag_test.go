package messagingcluster

import "testing"

// TestRoundLag checks that a small change of the lag does not change the rounded lag, so that the
// status is not written for it.
func TestRoundLag(t *testing.T) {
	t.Parallel()
	for lag, want := range map[uint64]int64{
		0: 0, 999: 0, 1000: 1000, 1999: 1000, 2000: 2000, 3999: 2000, 4000: 4000,
		1 << 40: 1000 << 30,
	} {
		if got := roundLag(lag); got != want {
			t.Errorf("lag %d: got %d, want %d", lag, got, want)
		}
	}
}
