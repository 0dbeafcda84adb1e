package simulation

import (
	"log/slog"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestSimulation runs FRESHET_SEEDS seeds (default 5) from FRESHET_SEED on.
func TestSimulation(t *testing.T) {
	seeds, first := uint64(5), uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("FRESHET_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("FRESHET_SEED"), 10, 64); err == nil {
		first = n
		if os.Getenv("FRESHET_SEEDS") == "" {
			seeds = 1
		}
	}
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("FRESHET_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	faults, messages, records := 0, 0, 0
	begin := time.Now()
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		var out Result
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { out = newWorld(seed, dir, log).run(t.Context()) })
		faults, messages, records = faults+len(out.Faults), messages+out.Messages, records+out.Records
		if len(out.Wrong) > 0 {
			t.Errorf("FRESHET_SEED=%d: %d faults, %d messages, %d records; violations:",
				seed, len(out.Faults), out.Messages, out.Records)
			for _, wrong := range out.Wrong {
				t.Error("  " + wrong)
			}
			for _, fault := range out.Faults {
				t.Log("  fault: " + fault)
			}
		}
	}
	took := time.Since(begin)
	t.Logf("%d seeds from %d: %d faults, %d acknowledged messages, %d journal records, %.0f seeds an hour",
		seeds, first, faults, messages, records, float64(seeds)/took.Hours())
}
