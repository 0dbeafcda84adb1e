package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"freshet/test/ensemble/simulation/natssim"
)

// Result is what one run did and found.
type Result struct {
	Seed     uint64
	Faults   []string
	Messages int      // acknowledged
	Records  int      // acknowledged, of the journal
	Wrong    []string // violations; a correct run has none
}

// runTime is the simulated time for which clients work and faults are injected.
const runTime = 40 * time.Second

// run starts three members, lets clients work while faults are injected, and checks the result.
func (w *world) run(ctx context.Context) Result {
	defer w.close()
	var starting sync.WaitGroup
	for _, name := range names {
		w.disks[name] = w.newFS(name)
	}
	for _, name := range names {
		starting.Go(func() {
			m, err := w.start(ctx, name, w.disks[name])
			if err != nil {
				w.violation("member %s does not start: %v", name, err)
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.members[name] = m
		})
	}
	starting.Wait()
	working, stop := context.WithTimeout(ctx, runTime)
	defer stop()
	var clients sync.WaitGroup
	client := func(number uint64, work func(*rand.Rand)) {
		random := rand.New(rand.NewPCG(w.seed, 100+number)) //nolint:gosec // a simulation
		clients.Go(func() { work(random) })
	}
	for shard := range shardCount {
		for writer := range 3 {
			id := uint64(10*shard + writer) //nolint:gosec // small
			client(id, func(r *rand.Rand) { w.write(working, shard, writer, r) })
		}
		client(uint64(50+shard), func(r *rand.Rand) { w.read(working, shard, r) }) //nolint:gosec // small
	}
	for writer := range 2 {
		client(uint64(70+writer), func(r *rand.Rand) { w.record(working, writer, r) }) //nolint:gosec // small
	}
	lostEnd := w.inject(working)
	clients.Wait()
	w.finish(ctx, lostEnd)
	out := Result{Seed: w.seed, Faults: w.faults, Records: len(w.records), Wrong: w.wrong}
	for _, acked := range w.acked {
		out.Messages += len(acked)
	}
	return out
}

// inject injects faults until the context ends. It reports whether a log lost its end.
func (w *world) inject(ctx context.Context) (lostEnd bool) {
	w.nats.SetChances(natssim.Chances{
		Drop: w.random.Float64() * 0.02, Late: w.random.Float64() * 0.01, Repeat: w.random.Float64() * 0.02,
		Silent: w.random.Float64() * 0.02,
	})
	w.etcd.SetSilent(w.random.Float64() * 0.01)
	for ctx.Err() == nil {
		time.Sleep(time.Duration(w.random.Int64N(int64(4 * time.Second))))
		name := names[w.random.IntN(len(names))]
		switch w.random.IntN(8) {
		case 0, 1:
			w.crash(ctx, name)
		case 2:
			w.restart(ctx, name)
		case 3:
			w.isolate(name, true, w.random.IntN(2) == 0)
		case 4:
			w.isolate(name, false, true)
		case 5, 6:
			w.elect()
		case 7:
			w.damage()
		}
	}
	return lostEnd
}

// crash crashes a member and starts it again a while later.
func (w *world) crash(ctx context.Context, name string) {
	m := w.remove(name)
	if m == nil {
		return
	}
	w.fault("crash of %s", name)
	w.disks[name] = m.crash(w)
	w.again(ctx, name)
}

// restart stops a member in order and starts it again.
func (w *world) restart(ctx context.Context, name string) {
	m := w.remove(name)
	if m == nil {
		return
	}
	w.fault("restart of %s", name)
	m.stop(w)
	w.again(ctx, name)
}

// again starts a member after a while.
func (w *world) again(ctx context.Context, name string) {
	time.Sleep(time.Duration(w.random.Int64N(int64(6 * time.Second))))
	_ = w.up(ctx, name) // finish starts those that did not start in time
}

// isolate cuts a member off for a while.
func (w *world) isolate(name string, fromEtcd, fromLog bool) {
	w.mu.Lock()
	m := w.members[name]
	w.mu.Unlock()
	if m == nil {
		return
	}
	w.fault("%s is cut off from etcd %v, from the log %v", name, fromEtcd, fromLog)
	if fromEtcd {
		m.etcd.Cut()
	}
	if fromLog {
		m.nats.Cut()
	}
	time.Sleep(time.Duration(w.random.Int64N(int64(8 * time.Second))))
	m.etcd.Restore()
	m.nats.Restore()
}

// elect moves the leader of a stream.
func (w *world) elect() {
	all := w.nats.Names()
	if len(all) == 0 {
		return
	}
	stream := all[w.random.IntN(len(all))]
	w.fault("election in %s", stream)
	w.nats.Elect(stream, time.Duration(w.random.Int64N(int64(3*time.Second))))
}

// damage damages one replica of a stream. Some time later the replica is replaced with a good one, as
// a member that verifies its files does.
func (w *world) damage() {
	all := w.nats.Names()
	if len(all) == 0 {
		return
	}
	stream := all[w.random.IntN(len(all))]
	w.fault("damage in %s", stream)
	w.nats.Damage(stream)
	time.Sleep(time.Duration(w.random.Int64N(int64(5 * time.Second))))
	w.nats.Heal(stream)
}
