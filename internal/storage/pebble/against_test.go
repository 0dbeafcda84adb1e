package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// BenchmarkAgainstBare alternates between bare Pebble, appends and receive + acknowledge, so
// that other load on the machine affects all three alike. It reports the ratios of the median
// turns and of the CPU time, which other load hardly affects.
func BenchmarkAgainstBare(b *testing.B) {
	ctx := context.Background()
	for _, writers := range []int{1, 16, 64, 512} {
		b.Run(fmt.Sprintf("writers=%d/size=1024", writers), func(b *testing.B) {
			db, e := openBare(b), openBench(b)
			makeTopics(b, e, 1, 1, true)
			value := payload(1024)
			var key atomic.Uint64
			bare := &workload{writers: writers, call: func() error {
				var k [messageKeyLen]byte
				binary.BigEndian.PutUint64(k[8:], key.Add(1))
				return db.Set(k[:], value, cdb.Sync)
			}}
			appends := &workload{writers: writers, call: func() error {
				_, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: value}})
				return err
			}}
			receives := &workload{writers: writers, call: func() error { return receiveAck(ctx, e) }}
			for b.Loop() {
				for range roundsPerLoop {
					bare.turn(b)
					appends.turn(b)
					receives.turn(b)
				}
			}
			b.ReportMetric(bare.rate(), "bare/s")
			b.ReportMetric(appends.rate(), "append/s")
			b.ReportMetric(receives.rate(), "receive+ack/s")
			b.ReportMetric(100*appends.rate()/bare.rate(), "append-%-of-bare")
			b.ReportMetric(100*receives.rate()/appends.rate(), "receive+ack-%-of-append")
			b.ReportMetric(bare.cpuPerCall(), "bare-cpu-µs")
			b.ReportMetric(appends.cpuPerCall(), "append-cpu-µs")
			b.ReportMetric(receives.cpuPerCall(), "receive+ack-cpu-µs")
		})
	}
}

// workload is one of several workloads that take turns.
type workload struct {
	writers int
	call    func() error
	turns   []time.Duration
	cpu     time.Duration
}

const (
	callsPerWriter = 50 // calls of each writer in a turn
	roundsPerLoop  = 7  // minimum number of turns for the median
)

func (c *workload) turn(b *testing.B) {
	start, used := time.Now(), cpuTime()
	spread(c.writers, c.writers*callsPerWriter, func(_, _ int) {
		if err := c.call(); err != nil {
			b.Error(err)
		}
	})
	c.turns = append(c.turns, time.Since(start))
	c.cpu += cpuTime() - used
}

// rate returns the calls per second in the median turn.
func (c *workload) rate() float64 {
	slices.Sort(c.turns)
	return float64(c.writers*callsPerWriter) / c.turns[len(c.turns)/2].Seconds()
}

func (c *workload) cpuPerCall() float64 {
	return float64(c.cpu.Microseconds()) / float64(len(c.turns)*c.writers*callsPerWriter)
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// receiveAck receives one message of topic 1 and acknowledges it durably.
func receiveAck(ctx context.Context, e *Engine) error {
	got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
	if err != nil || len(got) != 1 {
		return fmt.Errorf("got %d messages, want 1: %w", len(got), err)
	}
	return e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID}})
}
