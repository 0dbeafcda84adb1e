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
	Seed         uint64
	Faults       []string
	Messages     int      // acknowledged
	Records      int      // acknowledged, of the journal
	Commits      int      // acknowledged, of offsets
	Assigned     int      // partitions that consumers got
	LogsCut      int      // shards whose log has lost its end
	Rebuilt      int      // of those, shards that have everything; the others are closed
	Spoiled      int      // damaged files of copies
	Healed       int      // damaged copies that members have found and replaced
	JournalsLost int      // streams of the journal that have lost records
	Fetched      int      // checkpoints that were offered to another member
	Cut          int      // responses of members that ended early
	Wrong        []string // violations; a correct run has none
}

// plan is how a run treats the ensemble. It depends on the seed.
type plan struct {
	time      time.Duration // for which clients work and faults are injected; at most a consumer's session
	writers   int           // of each shard
	pause     time.Duration // longest pause of a writer between two messages
	gap       time.Duration // longest time between two faults
	chances   natssim.Chances
	silent    float64       // probability that etcd's response is lost
	cut       float64       // probability that a response of a member to another one ends early
	goneAfter time.Duration // how long the log is kept for a member that is away
	loseEnd   bool          // logs lose their end in the last third of the run
}

// newPlan draws a plan. A third of the runs is calm: few messages are lost, and the faults have time to
// heal. A third is busy: many writers, so that many appends are in flight at a fault. A third is rough: many
// messages are lost, late or repeated.
func newPlan(random *rand.Rand) plan {
	p := plan{time: 45 * time.Second, writers: 3, pause: 60 * time.Millisecond, gap: 4 * time.Second}
	most := 0.01
	switch random.IntN(3) {
	case 0:
		p.time, p.writers, p.pause, p.gap = 30*time.Second, 8, 100*time.Millisecond, 3*time.Second
	case 1:
		p.gap, most = 2*time.Second, 0.05
	}
	p.chances = natssim.Chances{
		Drop: random.Float64() * most, Late: random.Float64() * most / 2, Repeat: random.Float64() * most,
		Silent: random.Float64() * most,
	}
	p.silent = random.Float64() * most / 2
	p.loseEnd = random.IntN(4) == 0
	p.cut = random.Float64() * 0.3
	p.goneAfter = 10 * time.Minute
	if random.IntN(2) == 0 {
		p.goneAfter = 3 * time.Second
	}
	return p
}

// run starts three members, lets clients work while faults are injected, and checks the result.
func (w *world) run(ctx context.Context) Result {
	defer w.close()
	p := newPlan(w.random)
	w.goneAfter = p.goneAfter
	w.startAll(ctx)
	working, stop := context.WithTimeout(ctx, p.time)
	defer stop()
	var clients sync.WaitGroup
	w.startClients(working, p, &clients)
	w.inject(working, p)
	clients.Wait()
	w.finish(ctx)
	return w.result()
}

// startClients starts the clients, which work until the context ends.
func (w *world) startClients(ctx context.Context, p plan, clients *sync.WaitGroup) {
	number := uint64(100)
	client := func(work func(*rand.Rand)) {
		number++
		random := rand.New(rand.NewPCG(w.seed, number)) //nolint:gosec // a simulation
		clients.Go(func() { work(random) })
	}
	for shard := range shardCount {
		for writer := range p.writers {
			client(func(r *rand.Rand) { w.write(ctx, shard, writer, p.pause, r) })
		}
		client(func(r *rand.Rand) { w.read(ctx, shard, r) })
	}
	client(func(r *rand.Rand) { w.snapshot(ctx, r) })
	for group := range groupCount {
		client(func(r *rand.Rand) { w.commit(ctx, group, r) })
	}
	for consumer := range consumerCount {
		client(func(r *rand.Rand) { w.consume(ctx, consumer, r) })
	}
	for writer := range 2 {
		client(func(r *rand.Rand) { w.record(ctx, writer, r) })
	}
}

// result returns what the run did and found.
func (w *world) result() Result {
	out := Result{
		Seed: w.seed, Faults: w.faults, Records: len(w.records), Commits: w.commits, Assigned: w.assignments,
		Rebuilt: w.rebuilt, Spoiled: w.spoils, Healed: w.healed, JournalsLost: w.journalsLost,
		Fetched: w.transfers.offered, Cut: w.transfers.interrupted, Wrong: w.wrong,
	}
	for _, lost := range w.endLost {
		if lost {
			out.LogsCut++
		}
	}
	for _, acked := range w.acked {
		out.Messages += len(acked)
	}
	return out
}

// inject injects faults until the context ends.
func (w *world) inject(ctx context.Context, p plan) {
	w.nats.SetChances(p.chances)
	w.etcd.SetSilent(p.silent)
	w.transfers.set(p.cut)
	begin := time.Now()
	for number := uint64(1000); ctx.Err() == nil; number++ {
		// Each fault has random numbers of its own, so that a repeated run has the same faults.
		w.random = rand.New(rand.NewPCG(w.seed, number)) //nolint:gosec // a simulation
		time.Sleep(w.upTo(p.gap))
		if p.loseEnd && time.Since(begin) > p.time*2/3 {
			w.loseEnd(ctx)
			p.loseEnd = w.random.IntN(3) == 0
			continue
		}
		name, shard := names[w.random.IntN(len(names))], w.random.IntN(shardCount)
		switch w.random.IntN(23) {
		case 0, 1:
			w.crash(name)
			w.again(ctx, name)
		case 2:
			w.restart(ctx, name)
		case 3:
			w.isolate(name, true, w.random.IntN(2) == 0)
		case 4:
			w.isolate(name, false, true)
		case 5:
			w.elect(w.anyStream())
		case 6:
			w.damage(w.anyStream())
		case 7, 8:
			w.damageNext(shard)
		case 9, 10:
			w.crashInElection(ctx, shard)
		case 11:
			w.crashBeforeLaggards(ctx, shard)
		case 12, 13:
			w.expire(shard)
		case 14, 15, 16, 17:
			w.spoil(ctx, name, shard)
		case 18, 19:
			w.crash(name)
			time.Sleep(w.upTo(10 * time.Second)) // the log may not be kept for it that long
			w.again(ctx, name)
		case 20, 21:
			w.loseJournal(ctx)
		case 22:
			w.spoilJournalCopy(ctx, name)
		}
	}
}
