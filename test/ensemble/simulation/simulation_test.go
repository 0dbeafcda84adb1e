package simulation

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// defaultSeeds is the number of seeds in a run of all tests. It takes a few seconds.
const defaultSeeds = 4

// Environment variables of TestSimulation.
const (
	envSeed    = "FRESHET_SEED"         // the only seed
	envSeeds   = "FRESHET_SEEDS"        // the number of runs
	envFirst   = "FRESHET_FIRST_SEED"   // default 1
	envStep    = "FRESHET_SEED_STEP"    // between two seeds, default 1
	envWorkers = "FRESHET_SEED_WORKERS" // processes, default 1
	envLog     = "FRESHET_TEST_LOG"     // logs of the members to standard error
)

// number returns the number in an environment variable.
func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 32); err == nil {
		return n
	}
	return otherwise
}

// TestSimulation runs FRESHET_SEEDS seeds, or FRESHET_SEEDS times the seed FRESHET_SEED. It stops at the first
// failure.
func TestSimulation(t *testing.T) {
	seeds, first, step := number(envSeeds, defaultSeeds), number(envFirst, 1), number(envStep, 1)
	if seed := number(envSeed, 0); seed > 0 {
		seeds, first, step = number(envSeeds, 1), seed, 0
	}
	if workers := number(envWorkers, 1); workers > 1 {
		runWorkers(t, seeds, first, step, workers)
		return
	}
	log := slog.New(slog.DiscardHandler)
	if os.Getenv(envLog) != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a run needs little memory
	var sum Result
	runs, begin, cpu := 0, time.Now(), cpuTime()
	for ; uint64(runs) < seeds && !t.Failed(); runs++ {
		seed := first + uint64(runs)*step
		out := runSeed(t, seed, log)
		sum.add(&out)
		if len(out.Wrong) > 0 {
			t.Error(out.describe())
		}
	}
	t.Logf("%d runs: %d faults, %d acknowledged messages, %d journal records, %d commits of offsets, "+
		"%d assigned partitions, %d logs without their end of which %d were rebuilt, %d damaged files of copies and "+
		"%d replaced copies, %d lost journals, %d checkpoints, %d interrupted transfers; "+
		"%.0f runs an hour, %.2f s of CPU time each", runs, len(sum.Faults), sum.Messages, sum.Records, sum.Commits,
		sum.Assigned, sum.LogsCut, sum.Rebuilt, sum.Spoiled, sum.Healed, sum.JournalsLost, sum.Fetched, sum.Cut,
		float64(runs)/time.Since(begin).Hours(), (cpuTime()-cpu).Seconds()/float64(max(1, runs)))
}

// add adds up what runs did.
func (r *Result) add(out *Result) {
	r.Faults = append(r.Faults, out.Faults...)
	r.Messages += out.Messages
	r.Records += out.Records
	r.LogsCut += out.LogsCut
	r.Rebuilt += out.Rebuilt
	r.Spoiled += out.Spoiled
	r.Healed += out.Healed
	r.Commits += out.Commits
	r.Assigned += out.Assigned
	r.JournalsLost += out.JournalsLost
	r.Fetched += out.Fetched
	r.Cut += out.Cut
}

// runSeed runs one seed in simulated time. Goroutines that are left over at the end are a violation too.
func runSeed(t *testing.T, seed uint64, log *slog.Logger) (out Result) {
	// The NATS client has a pool of timers for the whole process. Those of an earlier run belong to its
	// simulated time and cannot be used in this one. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	dir := t.TempDir()
	defer func() {
		if problem := recover(); problem != nil {
			out.Seed, out.Wrong = seed, append(out.Wrong, fmt.Sprint(problem))
			fmt.Fprintln(os.Stderr, out.describe())
			panic(problem) // the process cannot run another simulation
		}
	}()
	synctest.Test(t, func(t *testing.T) { out = newWorld(seed, dir, log).run(t.Context()) })
	return out
}

// describe describes a failed run and how to repeat it.
func (r *Result) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d failed; repeat it with: make simulate FRESHET_SEED=%d\n", r.Seed, r.Seed)
	fmt.Fprintf(&b, "%d acknowledged messages, %d journal records; violations:\n", r.Messages, r.Records)
	for _, wrong := range r.Wrong {
		fmt.Fprintf(&b, "  %s\n", wrong)
	}
	b.WriteString("faults:\n")
	for _, fault := range r.Faults {
		fmt.Fprintf(&b, "  %s\n", fault)
	}
	return b.String()
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
