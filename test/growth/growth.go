// Package growth checks how the cost of work grows with its size. It measures the CPU time of the
// process and compares two sizes, or the work and a reference, in the same run, so that neither the
// speed nor the load of the machine decides. Only tests that are not parallel may use it, because
// the CPU time includes the work of the tests that run at the same time.
//
// Limits of steps, bytes and calls are better where the code counts them.
package growth

import (
	"syscall"
	"testing"
	"time"
)

const (
	// factor is the ratio of the two sizes. Work of linear cost takes factor times as long for the
	// larger one, work of quadratic cost factor² times.
	factor = 16
	// margin is how much more than linear the cost may grow; caches and the garbage collector need
	// some of it. Quadratic cost grows factor times more than linear.
	margin = 5
	// least is the CPU time below which a measurement has no meaning.
	least = 2 * time.Millisecond
)

// CheckLinear calls work with a sixteenth of size and with size. It fails the test if the CPU time
// grows much faster than the size.
func CheckLinear(t testing.TB, what string, size int, work func(size int)) {
	t.Helper()
	small := cpuTime(t, func() { work(size / factor) })
	large := cpuTime(t, func() { work(size) })
	t.Logf("%s: %s for size %d, %s for size %d", what, small, size/factor, large, size)
	if limit := max(small, least) * factor * margin; large > limit {
		t.Errorf("%s: got %s of CPU time for size %d after %s for size %d, want at most %s", what, large, size, small,
			size/factor, limit)
	}
}

// CheckAtMost calls reference and work. It fails the test if work takes more CPU time.
func CheckAtMost(t testing.TB, what string, reference, work func()) {
	t.Helper()
	limit := cpuTime(t, reference)
	got := cpuTime(t, work)
	t.Logf("%s: %s, and %s for the reference", what, got, limit)
	if got > limit {
		t.Errorf("%s: got %s of CPU time, want at most the %s of the reference", what, got, limit)
	}
}

func cpuTime(t testing.TB, work func()) time.Duration {
	t.Helper()
	before := usage(t)
	work()
	return usage(t) - before
}

func usage(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatalf("reading the CPU time of the process: %v", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
