package chaos

import (
	"iter"
	"math/rand/v2"
	"time"
)

// Plan says which faults come when. Plans of the same seed and the same list of
// faults are the same.
type Plan struct {
	Seed uint64
	// Length is when the last fault begins, at the latest; zero does each fault of
	// the list once, in its order.
	Length time.Duration
	// Quiet is the time between two faults, by chance between half of it and all.
	Quiet time.Duration
}

type step struct {
	quiet, hold time.Duration
	fault       Fault
}

// steps are the faults in the order of the plan: each round has every fault once,
// in an order by chance.
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
