package simulation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// runWorkers distributes seeds over processes, because a process can run one simulation at a time. The first
// failure ends all of them.
func runWorkers(t *testing.T, seeds, first, step, workers uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	for worker := range min(workers, seeds) {
		share := (seeds - worker + workers - 1) / workers
		running.Go(func() {
			command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSimulation$", "-test.v",
				"-test.timeout=24h")
			command.Env = append(os.Environ(), envWorkers+"=1", "GOMAXPROCS=1", fmt.Sprint(envSeeds, "=", share),
				fmt.Sprint(envFirst, "=", first+worker*step), fmt.Sprint(envStep, "=", workers*step))
			out, err := command.CombinedOutput()
			switch {
			case err == nil:
				t.Log(lastLine(string(out)))
			case ctx.Err() == nil:
				cancel()
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	running.Wait()
}

// lastLine returns the line in which a worker summarizes its runs.
func lastLine(out string) string {
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(line, ": "); ok && strings.Contains(text, "runs an hour") {
			return strings.TrimSpace(text)
		}
	}
	return out
}
