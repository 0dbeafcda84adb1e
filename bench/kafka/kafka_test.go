// Package kafka measures the Kafka protocol of the real binary and compares it with
// Apache Kafka when its libraries can be downloaded: the same client makes the same calls
// to each broker alternately. CPU time of the broker process is printed first, because
// throughput varies on a shared machine. `make bench-kafka` runs it.
//
// No two records of a trial are equal. Each broker is warmed up until its CPU time per record
// stands still (steady), because the Java virtual machine compiles what runs often. The CPU
// time that a broker uses while it is idle is subtracted, and work that it does after its last
// acknowledgement, for example compactions, is added (settle).
package kafka

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/test/testserver"
)

const rounds = 3

var freshet string // the binary

func TestMain(m *testing.M) {
	if os.Getenv(bareEnv) != "" {
		if err := serveBare(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testserver.Main(m, &freshet)
}

// outcome is the result of a trial.
type outcome struct {
	records  int
	bytes    int           // of the values that were written; 0 if the row does not write
	p50, p99 time.Duration // latency of single calls or records; 0 if not timed
	note     string
}

// sample is the result of a trial with its elapsed time and CPU time, the bytes that the broker
// wrote to storage, and its resident memory at the end.
type sample struct {
	outcome
	took, cpu         time.Duration
	written, resident int64
}

// amplification returns the bytes written to storage for each byte of the records; 0 for a row that
// does not write records.
func (s sample) amplification() float64 {
	if s.bytes == 0 {
		return 0
	}
	return float64(s.written) / float64(s.bytes)
}

// perRecord returns the CPU time per record in microseconds.
func (s sample) perRecord() float64 { return s.cpu.Seconds() * 1e6 / float64(s.records) }

// row is a workload that is measured with several variants alternately.
type row struct {
	name     string
	variants func(brokers []*broker) []variant
	rounds   int  // 0 means the package default
	cold     bool // no warm-up round: the row is long enough or starts its own server
}

// withRounds sets the number of rounds.
func (r row) withRounds(rounds int) row {
	r.rounds = rounds
	return r
}

// once sets one round without a warm-up.
func (r row) once() row {
	r.rounds, r.cold = 1, true
	return r
}

// variant is one of the variants that a row compares.
type variant struct {
	name string
	k    *broker
	do   func(t *trial) (outcome, error)
}

// onEveryBroker returns a row that does the same on every broker.
func onEveryBroker(name string, do func(t *trial) (outcome, error)) row {
	return row{name: name, variants: func(brokers []*broker) (all []variant) {
		for _, k := range brokers {
			all = append(all, variant{k.name, k, do})
		}
		return all
	}}
}

const kib = 1 << 10

var rows = []row{
	produceRow("produce events, 256 KiB batches, 16 producers",
		load{records: 160_000, of: events, batch: 256 * kib, producers: 16}),
	produceRow("produce random bytes, 256 KiB batches, 16 producers",
		load{records: 160_000, of: random, batch: 256 * kib, producers: 16}),
	produceRow("produce events, 16 KiB batches, 1 producer",
		load{records: 80_000, of: events, batch: 16 * kib, producers: 1}),
	produceRow("produce events, 16 KiB batches, 16 producers",
		load{records: 80_000, of: events, batch: 16 * kib, producers: 16}),
	produceRow("produce events, 16 KiB batches, lz4",
		load{records: 80_000, of: events, batch: 16 * kib, producers: 1, codec: kgo.Lz4Compression()}),
	produceRow("produce events, 16 KiB batches, zstd",
		load{records: 80_000, of: events, batch: 16 * kib, producers: 1, codec: kgo.ZstdCompression()}),
	produceRow("produce 100 B, 16 KiB batches, 1 producer",
		load{records: 160_000, of: readings, batch: 16 * kib, producers: 1}),
	produceRow("produce 100 B, 16 KiB batches, 16 producers",
		load{records: 160_000, of: readings, batch: 16 * kib, producers: 16}),
	singleRow("produce one at a time, 1 producer", 1, 1_500),
	singleRow("produce one at a time, 64 producers", 64, 100),
	consumeRow("consume events from the start", load{records: 160_000, of: events, batch: 256 * kib, producers: 1}),
	consumeRow("consume random bytes from the start",
		load{records: 160_000, of: random, batch: 256 * kib, producers: 1}),
	consumeRow("consume 100 B from the start", load{records: 160_000, of: readings, batch: 16 * kib, producers: 1}),
	tailRow("produce and consume at the tail, 100 B",
		load{records: 160_000, of: readings, batch: 16 * kib, producers: 1}),
	endToEndRow("end to end, 10,000 records/s of 100 B", 10_000, 3*time.Second).withRounds(5),
	commitRow("commit offsets, 64 consumers", 64, 300),
	httpRow("consume and acknowledge over HTTP, 100 B", 16, 6_000).withRounds(5),
	heartbeatRow("heartbeats, 1,000 groups of 10 members, every 3 s", 1_000, 10).once(),
	idleRow("10,000 idle connections", 10_000).once(),
}

// BenchmarkKafka prints a table with the medians of the rounds. A row that fails is
// reported and the following rows still run.
func BenchmarkKafka(b *testing.B) {
	own := startFreshet(b, "Freshet", freshet)
	brokers := []*broker{own}
	if before := os.Getenv("FRESHET_BEFORE"); before != "" {
		brokers = append(brokers, startFreshet(b, "Freshet, the other build", before))
	}
	if script := os.Getenv("FRESHET_BENCH_KAFKA"); script != "" {
		brokers = append(brokers, startKafka(b, script, "Kafka"),
			startKafka(b, script, "Kafka, flush.messages=1", "flush.messages=1"))
	} else {
		fmt.Println("Apache Kafka is NOT MEASURED: FRESHET_BENCH_KAFKA does not name hack/kafka-peer.sh")
	}
	for _, k := range brokers {
		if err := k.measureIdle(b.Context()); err != nil {
			b.Fatal(err)
		}
		fmt.Printf("%s uses %.1f %% of a core when idle, which is subtracted\n", k.name, 100*k.idle)
	}
	fmt.Printf("load average before: %s\n", machineLoad())
	wanted := strings.Split(os.Getenv("FRESHET_BENCH_ROWS"), ";")
	for b.Loop() {
		for i := range rows {
			if !slices.ContainsFunc(wanted, func(part string) bool { return strings.Contains(rows[i].name, part) }) {
				continue
			}
			fmt.Printf("\n%s row %d of %d\n", time.Now().Format(time.TimeOnly), i+1, len(rows))
			if err := measure(b, i, brokers); err != nil {
				fmt.Printf("%s: NOT MEASURED: %v\n", rows[i].name, err)
				b.Errorf("%s: %v", rows[i].name, err)
			}
			if dir := os.Getenv("FRESHET_BENCH_PROFILES"); dir != "" {
				if err := profile(b, i, own, filepath.Join(dir, fmt.Sprintf("stream-%d", i))); err != nil {
					b.Error(err)
				}
			}
		}
	}
	fmt.Printf("\nload average after: %s\n", machineLoad())
	b.ReportMetric(0, "ns/op")
}

// machineLoad returns the load averages of the system.
func machineLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 2 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}

// measure runs the rounds of a row and prints its table.
func measure(b *testing.B, i int, brokers []*broker) error {
	b.Helper()
	variants := rows[i].variants(brokers)
	samples := make([][]sample, len(variants))
	if !rows[i].cold {
		for n := range variants {
			if err := variants[n].warmUp(b, fmt.Sprintf("row-%d-warm-%d", i, n)); err != nil {
				return fmt.Errorf("%s: %w", variants[n].name, err)
			}
		}
	}
	for round := range cmp.Or(rows[i].rounds, rounds) {
		for n, s := range variants {
			got, err := s.run(b, fmt.Sprintf("row-%d-%d-%d", i, round, n), nil)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			samples[n] = append(samples[n], got)
		}
	}
	printRow(rows[i].name, variants, samples)
	return nil
}

const (
	mostWarmUps  = 8    // rounds after which a variant is measured even if its figures still move
	steadyChange = 0.08 // CPU time per record of consecutive rounds that stands still
)

// warmUp runs the variant until its CPU time per record stands still. A broker that compiles
// its code while it runs needs several rounds.
func (s *variant) warmUp(b *testing.B, topic string) error {
	b.Helper()
	last := 0.0
	for round := range mostWarmUps {
		got, err := s.run(b, fmt.Sprintf("%s-%d", topic, round), nil)
		if err != nil {
			return err
		}
		now := got.perRecord()
		if round > 0 && now > last*(1-steadyChange) && now < last*(1+steadyChange) {
			return nil
		}
		last = now
	}
	fmt.Printf("(%s: CPU time per record still moves after %d warm-up rounds)\n", s.name, mostWarmUps)
	return nil
}

// printRow prints the medians of a row.
func printRow(name string, variants []variant, samples [][]sample) {
	fmt.Printf("%-52s %10s %6s %10s %6s %7s %8s %7s %10s %10s\n", name, "µs/record", "ratio", "records/s", "ratio",
		"cores", "B/B", "MB", "p50", "p99")
	rate := func(s sample) float64 { return float64(s.records) / s.took.Seconds() }
	own, fast := median(samples[0], sample.perRecord), median(samples[0], rate)
	for n, s := range variants {
		c, f := median(samples[n], sample.perRecord), median(samples[n], rate)
		middle := func(of func(sample) time.Duration) time.Duration {
			return time.Duration(median(samples[n], func(s sample) float64 { return float64(of(s)) })).Round(
				10 * time.Microsecond)
		}
		fmt.Printf("  %-50s %10.2f %6.2f %10.0f %6.2f %7.3f %8.2f %7.0f %10s %10s %s\n", s.name, c, own/c, f, fast/f,
			median(samples[n], func(s sample) float64 { return s.cpu.Seconds() / s.took.Seconds() }),
			median(samples[n], sample.amplification),
			median(samples[n], func(s sample) float64 { return float64(s.resident) / 1e6 }),
			middle(func(s sample) time.Duration { return s.p50 }),
			middle(func(s sample) time.Duration { return s.p99 }),
			samples[n][len(samples[n])-1].note)
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
