package journal_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// BenchmarkJournal measures appends of 256-byte records by one writer, and Last: in the
// embedded store, and with one and three NATS servers. The servers run in this process, so
// that their processor time is included.
func BenchmarkJournal(b *testing.B) {
	e, err := pebble.Open(filepath.Join(b.TempDir(), "store"), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	j, err := e.Journal(b.Context(), "j")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append/embedded", func(b *testing.B) { benchmarkAppend(b, j) })
	b.Run("last/embedded", func(b *testing.B) { benchmarkLast(b, j) })
	for _, servers := range []int{1, 3} {
		natsCluster := natstest.New(b, servers)
		j := openJournal(b, openJournals(b, natsCluster.Connect(0), servers, "x"), "j")
		b.Run(fmt.Sprintf("append/servers=%d", servers), func(b *testing.B) { benchmarkAppend(b, j) })
		b.Run(fmt.Sprintf("last/servers=%d", servers), func(b *testing.B) { benchmarkLast(b, j) })
	}
}

func benchmarkLast(b *testing.B, j engine.Journal) {
	report := processorTime(b)
	for b.Loop() {
		if _, err := j.Last(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	report()
}

func benchmarkAppend(b *testing.B, j engine.Journal) {
	after, err := j.Last(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	record := make([]byte, 256)
	report := processorTime(b)
	for b.Loop() {
		if after, err = j.Append(b.Context(), after, record); err != nil {
			b.Fatal(err)
		}
	}
	report()
}

// processorTime reports the CPU time per operation over all processors.
func processorTime(b *testing.B) func() {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-µs/op") }
}
