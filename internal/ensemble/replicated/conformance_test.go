package replicated

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
	"freshet/test/tally"
)

// conformanceStore is a shard with several members for the conformance suite. Its power cuts are
// the faults that can happen to an owner.
type conformanceStore struct {
	rng     *rand.Rand
	tm      *team
	names   []string
	disks   map[string]*vfs.MemFS
	running map[string]*member
	owner   *member
	changes map[string]int // number of faults, by kind

	mu    sync.Mutex // protects cut and fault
	cut   chan struct{}
	fault func() // injected at the cut; nil when it was injected
}

func newConformanceStore(g *testEnsemble, rng *rand.Rand, names ...string) *conformanceStore {
	s := &conformanceStore{
		rng: rng, tm: g.team(), names: names, disks: map[string]*vfs.MemFS{}, running: map[string]*member{},
		changes: map[string]int{},
	}
	for _, name := range names {
		s.disks[name] = vfs.NewCrashableMem()
	}
	return s
}

func (s *conformanceStore) Open(t testing.TB) engine.Engine {
	t.Helper()
	for i, name := range s.names {
		if s.running[name] == nil {
			s.running[name] = s.tm.start(t, name, i%s.tm.g.nats.Size(), s.disks[name])
		}
	}
	deadline := time.After(60 * time.Second)
	for {
		for _, m := range s.running {
			if e, err := m.Engine(); err == nil && m.o.Lease.Alive() {
				s.owner, m.lastEpoch = m, m.epoch()
				return &conformanceEngine{e, s, t}
			}
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			for _, m := range s.running {
				t.Logf("member %s: %+v", m.name, m.Status())
			}
			t.Fatal("got no owner, want one")
		}
	}
}

// conformanceEngine closes the members with the engine.
type conformanceEngine struct {
	engine.Engine
	s *conformanceStore
	t testing.TB
}

func (e *conformanceEngine) Close() error {
	err := e.Engine.Close()
	var wg sync.WaitGroup
	for name, m := range e.s.running {
		delete(e.s.running, name)
		wg.Go(func() { m.stop(e.t) })
	}
	wg.Wait()
	return err
}

// CutAfter injects a fault into the owner after the given steps, each a fraction of the
// duration of an append.
func (s *conformanceStore) CutAfter(steps int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := make(chan struct{})
	fault := s.choose()
	s.cut = cut
	s.fault = func() {
		close(cut)
		fault()
	}
	time.AfterFunc(time.Duration(steps)*100*time.Microsecond, s.inject)
	return cut
}

func (s *conformanceStore) inject() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		s.fault()
		s.fault = nil
	}
}

// choose returns a random fault for the owner.
func (s *conformanceStore) choose() func() {
	owner := s.owner
	faults := []string{"killed", "key deleted", "fenced"}
	if len(s.names) > 1 {
		faults = append(faults, "handed over", "key deleted")
	}
	what := faults[s.rng.IntN(len(faults))]
	s.changes[what]++
	switch what {
	case "killed":
		return func() { s.disks[owner.name], s.running[owner.name] = owner.crash(), nil }
	case "key deleted":
		return func() { _ = owner.deleteOwner(context.Background(), owner.ownerRevision()) }
	case "handed over":
		return func() {
			owner.postponeCampaign(300 * time.Millisecond)
			owner.requestHandOver()
		}
	}
	return func() {
		rev := owner.ownerRevision() // before it owns the shard again
		owner.fence()
		_ = owner.deleteOwner(context.Background(), rev)
	}
}

// Crash makes sure that the chosen fault was injected, and ends a killed member.
func (s *conformanceStore) Crash(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	if s.cut == nil {
		s.fault = s.choose()
	}
	s.mu.Unlock()
	s.inject()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = nil
	if s.running[s.owner.name] == nil {
		s.owner.abandon(t)
		delete(s.running, s.owner.name)
		return
	}
	// The owner has stopped serving, or serves under a new epoch.
	old := s.owner
	deadline := time.After(60 * time.Second)
	for {
		changed := old.Changed()
		if e, err := old.Engine(); err != nil || e.Health() == nil && old.epoch() > old.lastEpoch {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("got an owner that does not give up the shard: %+v", old.Status())
		}
	}
}

// TestConformance runs the conformance suite on a shard with one member and one server of
// the log, and with two members and three servers.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servers int
		names   []string
	}{
		"one server":    {1, []string{"a"}},
		"three servers": {3, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newTestEnsemble(t, tc.servers, natstest.Unsafe)
			enginetest.Run(t, enginetest.Options{RealTime: true, Timed: tally.Long()},
				func(t testing.TB) enginetest.Store {
					return newConformanceStore(g, rand.New(rand.NewPCG(rand.Uint64(), 0)), tc.names...)
				})
		})
	}
}
