package growth

import (
	"testing"
	"time"
)

// recorder records whether a check has failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// spend uses CPU time, so that the cost does not depend on the machine.
func spend(t *testing.T, d time.Duration) {
	t.Helper()
	for end := usage(t) + d; usage(t) < end; {
	}
}

func TestCheckAtMost(t *testing.T) { //nolint:paralleltest // measures CPU time
	reference := func() { spend(t, 20*time.Millisecond) }
	for cost, want := range map[time.Duration]bool{time.Millisecond: true, 60 * time.Millisecond: false} {
		r := &recorder{TB: t}
		CheckAtMost(r, "work", reference, func() { spend(t, cost) })
		if got := !r.failed; got != want {
			t.Errorf("cost of %s: got accepted %v, want %v", cost, got, want)
		}
	}
}

func TestCheckLinear(t *testing.T) { //nolint:paralleltest // measures CPU time
	for _, c := range []struct {
		name string
		cost func(size int) time.Duration
		want bool
	}{
		{"linear", func(size int) time.Duration { return time.Duration(size) * 30 * time.Microsecond }, true},
		{"quadratic", func(size int) time.Duration { return time.Duration(size*size) * time.Microsecond }, false},
	} {
		r := &recorder{TB: t}
		CheckLinear(r, c.name, 640, func(size int) { spend(t, c.cost(size)) })
		if got := !r.failed; got != c.want {
			t.Errorf("%s cost: got accepted %v, want %v", c.name, got, c.want)
		}
	}
}
