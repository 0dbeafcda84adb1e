package replicated

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/enginetest"
	"freshet/test/tally"
)

// historySeed returns the value of FRESHET_CRASH_SEED, or a random seed.
func historySeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("FRESHET_CRASH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}

// TestFaultHistories runs histories whose owner is killed, loses its owner key, is fenced by
// a rival, or hands over, at random moments.
func TestFaultHistories(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servers int
		names   []string
		lanes   int
	}{
		"one server":    {1, []string{"a", "b"}, 6},
		"three servers": {3, []string{"a", "b", "c"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newTestEnsemble(t, tc.servers, natstest.Unsafe)
			seed := historySeed(t)
			begin, most := time.Now(), 8*time.Second
			if tally.Long() {
				most = time.Minute
			}
			var mu sync.Mutex
			histories, changes := 0, map[string]int{}
			var wg sync.WaitGroup
			for lane := range tc.lanes {
				wg.Go(func() {
					t.Run(fmt.Sprint("lane=", lane), func(t *testing.T) {
						for i := lane; time.Since(begin) < most && !t.Failed(); i += tc.lanes {
							rng := rand.New(rand.NewPCG(seed, uint64(i)))
							s := newConformanceStore(g, rand.New(rand.NewPCG(seed, ^uint64(i))), tc.names...)
							enginetest.History(t, rng, s, 1+rng.IntN(4))
							mu.Lock()
							histories++
							for what, n := range s.changes {
								changes[what] += n
							}
							mu.Unlock()
						}
					})
				})
			}
			wg.Wait()
			total := 0
			for _, n := range changes {
				total += n
			}
			t.Logf("%d histories from seed %d; faults: %v", histories, seed, changes)
			tally.Fault{Name: "owner of a shard lost, " + name, Injected: total, Checked: histories}.Record(t)
		})
	}
}
