// Package stream measures the stream protocol of the real binary, beside Apache
// Kafka when its libraries can be had: the same client, the same calls, in turns.
// The processor time of the broker's process comes first, since rates swing on a
// machine that others use too. `make bench-stream` runs it.
package stream

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/test/testserver"
)

const rounds = 3

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// sample is what one turn of a row cost.
type sample struct {
	records int
	took    time.Duration
	cpu     time.Duration
	middle  time.Duration // of single calls; 0 where there are none
}

// row is something that clients do, with every broker in turn.
type row struct {
	name string
	do   func(b *testing.B, k *broker, topic string) (records int, middle time.Duration)
}

var rows = []row{
	produceRow("produce 100 B, 16 KiB batches, 1 producer", load{records: 200_000, size: 100, batch: 16 << 10, producers: 1}),
	produceRow("produce 100 B, 16 KiB batches, 16 producers", load{records: 200_000, size: 100, batch: 16 << 10, producers: 16}),
	produceRow("produce 1 KiB, 16 KiB batches, 1 producer", load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1}),
	produceRow("produce 1 KiB, 16 KiB batches, 16 producers", load{records: 40_000, size: 1024, batch: 16 << 10, producers: 16}),
	produceRow("produce 1 KiB, 256 KiB batches", load{records: 60_000, size: 1024, batch: 256 << 10, producers: 1}),
	produceRow("produce 1 KiB, 16 KiB batches, lz4", load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1, codec: kgo.Lz4Compression()}),
	produceRow("produce 1 KiB, 16 KiB batches, zstd", load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1, codec: kgo.ZstdCompression()}),
	singleRow("produce one at a time, 1 producer", 1, 1_500),
	singleRow("produce one at a time, 64 producers", 64, 200),
	consumeRow("consume 100 B from the start", load{records: 200_000, size: 100, batch: 16 << 10, producers: 1}),
	consumeRow("consume 1 KiB from the start", load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1}),
	commitRow("commit offsets, 64 consumers", 64, 150),
}

// BenchmarkStream prints a table: medians of the rounds.
func BenchmarkStream(b *testing.B) {
	own, _ := startFreshet(b)
	brokers := []*broker{own}
	if script := os.Getenv("FRESHET_BENCH_KAFKA"); script != "" {
		brokers = append(brokers, startKafka(b, script, "Kafka"), startKafka(b, script, "Kafka, flush.messages=1", "flush.messages=1"))
	} else {
		fmt.Println("Apache Kafka is NOT MEASURED: FRESHET_BENCH_KAFKA does not name hack/kafka-peer.sh")
	}
	only := os.Getenv("FRESHET_BENCH_ROWS")
	for b.Loop() {
		for i := range rows {
			if strings.Contains(rows[i].name, only) {
				measure(b, i, brokers)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// measure runs a row and prints what came of it.
func measure(b *testing.B, i int, brokers []*broker) {
	b.Helper()
	r := &rows[i]
	samples := make([][]sample, len(brokers))
	for round := range rounds + 1 {
		for n, k := range brokers {
			before, began := k.cpu(b), time.Now()
			preparing, preparingCPU = 0, 0
			records, middle := r.do(b, k, fmt.Sprintf("row-%d-%d", i, round))
			s := sample{records: records, took: time.Since(began) - preparing, cpu: k.cpu(b) - before - preparingCPU, middle: middle}
			if round > 0 { // the first warms up
				samples[n] = append(samples[n], s)
			}
		}
	}
	fmt.Printf("\n%-46s %14s %12s %10s %10s %12s\n", r.name, "µs/record", "ratio", "records/s", "ratio", "p50 of a call")
	cpu := func(s sample) float64 { return float64(s.cpu.Microseconds()) / float64(s.records) }
	rate := func(s sample) float64 { return float64(s.records) / s.took.Seconds() }
	own, fast := median(samples[0], cpu), median(samples[0], rate)
	for n, k := range brokers {
		c, f := median(samples[n], cpu), median(samples[n], rate)
		fmt.Printf("  %-44s %14.2f %12.2f %10.0f %10.2f %12s\n", k.name, c, own/c, f, fast/f,
			time.Duration(median(samples[n], func(s sample) float64 { return float64(s.middle) })).Round(10*time.Microsecond))
	}
}

func median(list []sample, of func(sample) float64) float64 {
	values := make([]float64, len(list))
	for i := range list {
		values[i] = of(list[i])
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}
