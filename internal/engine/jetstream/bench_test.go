package jetstream_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"freshet/internal/engine"
	"freshet/internal/natsserver/natstest"
)

// BenchmarkJournal is one writer of records of 256 bytes, and one reader of the
// journal's end, with one and with three servers in this process.
func BenchmarkJournal(b *testing.B) {
	for _, servers := range []int{1, 3} {
		group := natstest.New(b, servers)
		j := openJournal(b, openJournals(b, group.Connect(0), servers, "x"), "j")
		b.Run(fmt.Sprintf("append/servers=%d", servers), func(b *testing.B) { benchmarkAppend(b, j) })
		b.Run(fmt.Sprintf("last/servers=%d", servers), func(b *testing.B) {
			b.Cleanup(processorTime(b))
			for b.Loop() {
				if _, err := j.Last(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkAppend(b *testing.B, j engine.Journal) {
	after, err := j.Last(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	record := make([]byte, 256)
	b.Cleanup(processorTime(b))
	for b.Loop() {
		if after, err = j.Append(b.Context(), after, record); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime reports what an operation costs in time of all processors.
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
