package chaos

import (
	"iter"
	"math/rand/v2"
	"time"
)

// Plan determines which faults are injected when. The same seed and list of faults give
// the same plan.
type Plan struct {
	Seed uint64
	// Length is the latest start of the last fault; zero injects each fault once, in
	// the order of the list.
	Length time.Duration
	// Quiet is the maximum time between two faults; the actual time is random, at least half of it.
	Quiet time.Duration
}

type step struct {
	quiet, hold time.Duration
	fault       Fault
}

// steps returns the faults in the order of the plan. Each round has every fault once, in
// random order.
func (p Plan) steps(faults []Fault) iter.Seq[step] {
	chance := rand.New(rand.NewPCG(p.Seed, 1))
	part := func(d time.Duration) time.Duration {
		if d <= 0 {
			return 0
		}
		return d/2 + time.Duration(chance.Int64N(int64(d/2)+1))
	}
	return func(yield func(step) bool) {
		for began := time.Now(); len(faults) > 0; {
			order := chance.Perm(len(faults))
			for i := range faults {
				fault := faults[i]
				if p.Length > 0 {
					fault = faults[order[i]]
				}
				if p.Length > 0 && time.Since(began) > p.Length ||
					!yield(step{part(p.Quiet), part(fault.Hold), fault}) {
					return
				}
			}
			if p.Length == 0 {
				return
			}
		}
	}
}
