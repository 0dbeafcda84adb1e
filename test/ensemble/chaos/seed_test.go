package chaos

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// seed returns FRESHET_SEED, or a random seed.
func seed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("FRESHET_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("FRESHET_SEED: %v", err)
		}
		return n
	}
	n := rand.Uint64N(1_000_000)
	t.Logf("seed %d", n)
	return n
}

// TestPlan checks that a seed determines the plan, and that every round has each fault once.
func TestPlan(t *testing.T) {
	t.Parallel()
	faults := []Fault{{Name: "a", Hold: time.Second}, {Name: "b", Hold: time.Minute}, {Name: "c"}}
	take := func(p Plan) (names []string, holds []time.Duration) {
		for s := range p.steps(faults) {
			names, holds = append(names, s.fault.Name), append(holds, s.hold)
			if s.hold < s.fault.Hold/2 || s.hold > s.fault.Hold || s.quiet < p.Quiet/2 || s.quiet > p.Quiet {
				t.Errorf("%s: got %s after %s, want half to all of %s and %s", s.fault.Name, s.hold, s.quiet,
					s.fault.Hold, p.Quiet)
			}
			if len(names) == 9 {
				break
			}
		}
		return names, holds
	}
	once, _ := take(Plan{Seed: 1})
	if !slices.Equal(once, []string{"a", "b", "c"}) {
		t.Errorf("without a length: got %v, want each once, in order", once)
	}
	plan := Plan{Seed: 7, Length: time.Hour, Quiet: time.Second}
	names, holds := take(plan)
	again, same := take(plan)
	if !slices.Equal(names, again) || !slices.Equal(holds, same) {
		t.Errorf("the same seed: got %v %v and %v %v, want the same", names, holds, again, same)
	}
	for round := range slices.Chunk(names, 3) {
		if slices.Sort(round); !slices.Equal(round, once) {
			t.Errorf("a round: got %v, want each fault once", round)
		}
	}
}
