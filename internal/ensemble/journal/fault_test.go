package journal_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/test/parallel"
	"freshet/test/tally"
)

// TestMain runs many tests in parallel, because they mostly wait: for intervals of copies, for leases and
// for elections.
func TestMain(m *testing.M) {
	if natstest.Served() {
		return
	}
	parallel.Set(8)
	os.Exit(m.Run())
}

// members opens the same journal through several servers.
func members(t testing.TB, natsCluster *natstest.Cluster, servers ...int) []engine.Journal {
	t.Helper()
	var out []engine.Journal
	for _, i := range servers {
		out = append(out, openJournal(t, openJournals(t, natsCluster.Connect(i), natsCluster.Size(), "x"), "j"))
	}
	return out
}

const stream = "J_x_j"

// load runs clients on members until stop is called.
func (h *history) load(js []engine.Journal, each int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range each * len(js) {
		c := h.client(i, js[i%len(js)])
		wg.Go(func() { c.run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// awaitRecovery waits for an append that is acknowledged after since, and returns how long after.
func (h *history) awaitRecovery(since time.Duration) time.Duration {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if at := time.Duration(h.success.Load()); at > since {
			return at - since
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.t.Fatalf("got no append acknowledged within 30 s, want at least one")
		}
	}
}

func (h *history) record(name string, injected int, recovery time.Duration, j engine.Journal) {
	h.t.Helper()
	checked, lost := h.check(j)
	h.t.Logf("%d appends, %d records acknowledged, %d calls failed", h.tried.Load(), checked,
		h.failed.Load())
	tally.Fault{
		Name: name, Injected: injected, Checked: checked, Lost: lost, Wrong: h.wrong,
		Recovery: recovery,
	}.Record(h.t)
}

// duration returns how long a fault test injects faults.
func duration(short time.Duration) time.Duration {
	if tally.Long() {
		return time.Minute
	}
	return short
}

func TestMembersWriteAJournalAtTheSameTime(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		natsCluster := natstest.New(t, servers)
		js := members(t, natsCluster, 0, servers-1, servers/2)
		h := newHistory(t)
		h.timeout = time.Minute // nothing fails, however slow the machine is
		stop := h.load(js, 2)
		sleep(duration(1500 * time.Millisecond))
		stop()
		checked, lost := h.check(js[0])
		if checked == 0 || lost != 0 || h.wrong != 0 || h.failed.Load() != 0 {
			t.Errorf("%d servers: got %d records checked, %d lost, %d wrong, %d failed; want some and 0", servers,
				checked, lost, h.wrong, h.failed.Load())
		}
	}
}

// sleep waits while a load runs.
func sleep(d time.Duration) { <-time.After(d) }

func TestFaultJournalLeaderStepsDown(t *testing.T) {
	t.Parallel()
	natsCluster := natstest.New(t, 3)
	js := members(t, natsCluster, 0, 1, 2)
	h := newHistory(t)
	stop := h.load(js, 2)
	conn := natsCluster.Connect(0)
	injected, worst := 0, time.Duration(0)
	for end := time.Now().Add(duration(3 * time.Second)); time.Now().Before(end); {
		sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		at := h.now()
		if natsCluster.StepDown(ctx, conn, stream) == nil {
			injected++
		}
		cancel()
		worst = max(worst, h.awaitRecovery(at))
	}
	stop()
	h.record("journal: leader of the stream steps down", injected, worst, js[1])
}

func TestFaultJournalServerRestarts(t *testing.T) {
	t.Parallel()
	natsCluster := natstest.New(t, 3)
	js := members(t, natsCluster, 0, 1, 2)
	h := newHistory(t)
	rng := rand.New(rand.NewPCG(h.seed, 1000))
	stop := h.load(js, 2)
	injected, worst := 0, time.Duration(0)
	for end := time.Now().Add(duration(3 * time.Second)); time.Now().Before(end); injected++ {
		i := rng.IntN(3)
		at := h.now()
		natsCluster.Stop(i)
		worst = max(worst, h.awaitRecovery(at))
		natsCluster.Start(i)
		natsCluster.Ready()
	}
	stop()
	h.record("journal: one of three servers restarts", injected, worst, js[0])
}

// The killed server is a process of its own, so it cannot flush or hand over anything. The
// first kill hits the leader of the stream.
func TestFaultJournalServerIsKilled(t *testing.T) {
	t.Parallel()
	natsCluster := natstest.New(t, 3, natstest.Processes(2))
	js := members(t, natsCluster, 0, 1)
	h := newHistory(t)
	stop := h.load(js, 2)
	conn := natsCluster.Connect(0)
	rng := rand.New(rand.NewPCG(h.seed, 1000))
	injected, worst := 0, time.Duration(0)
	for end := time.Now().Add(duration(2 * time.Second)); injected == 0 || time.Now().Before(end); injected++ {
		h.awaitRecovery(h.now())
		if injected == 0 || rng.IntN(5) == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			if !natsCluster.Lead(ctx, conn, stream, 2) {
				t.Error("got another stream leader than the server to kill")
			}
			cancel()
		}
		at := h.now()
		natsCluster.Stop(2)
		worst = max(worst, h.awaitRecovery(at))
		natsCluster.Start(2)
	}
	stop()
	h.record("journal: one of three servers is killed", injected, worst, js[0])
}

// A leader that is cut off believes for seconds that it still leads. Its clients get an
// error or a correct response, never a stale one.
func TestFaultJournalLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	natsCluster := natstest.New(t, 3)
	js := members(t, natsCluster, 0, 1, 2)
	conn := natsCluster.Connect(0)
	h := newHistory(t)
	stop := h.load(js, 2)
	injected, worst := 0, time.Duration(0)
	for end := time.Now().Add(duration(time.Second)); injected == 0 || time.Now().Before(end); injected++ {
		h.awaitRecovery(h.now())
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		leader := -1
		for leader < 0 && ctx.Err() == nil {
			leader = natsCluster.Leader(ctx, conn, stream)
		}
		cancel()
		at := h.now()
		natsCluster.Cut(leader)
		h.awaitRecovery(at + time.Second)
		// The other servers have accepted writes. Query the former leader, which has not seen them.
		formerLeader := h.client(100+injected, js[leader])
		for range 5 {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			formerLeader.last(ctx)
			cancel()
		}
		healed := h.now()
		natsCluster.Heal(leader)
		worst = max(worst, h.awaitRecovery(healed))
		if time.Now().Before(end) {
			natsCluster.Ready() // one fault at a time
		}
	}
	stop()
	h.record("journal: leader of the stream is cut off", injected, worst, js[2])
}
