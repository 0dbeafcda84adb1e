// Package kafka measures the Kafka protocol of the real binary and compares it with
// Apache Kafka when its libraries can be downloaded: the same client makes the same calls
// to each broker alternately. CPU time of the broker process is printed first, because
// throughput varies on a shared machine. `make bench-kafka` runs it.
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
	p50, p99 time.Duration // latency of single calls or records; 0 if not timed
	note     string
}

// sample is the result of a trial with its elapsed time and CPU time.
type sample struct {
	outcome
	took, cpu time.Duration
}

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

var rows = []row{
	produceRow("produce 100 B, 16 KiB batches, 1 producer",
		load{records: 200_000, size: 100, batch: 16 << 10, producers: 1}),
	produceRow("produce 100 B, 16 KiB batches, 16 producers",
		load{records: 200_000, size: 100, batch: 16 << 10, producers: 16}),
	produceRow("produce 1 KiB, 16 KiB batches, 1 producer",
		load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1}),
	produceRow("produce 1 KiB, 16 KiB batches, 16 producers",
		load{records: 40_000, size: 1024, batch: 16 << 10, producers: 16}),
	produceRow("produce 1 KiB, 256 KiB batches", load{records: 60_000, size: 1024, batch: 256 << 10, producers: 1}),
	produceRow("produce 1 KiB, 16 KiB batches, lz4",
		load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1, codec: kgo.Lz4Compression()}),
	produceRow("produce 1 KiB, 16 KiB batches, zstd",
		load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1, codec: kgo.ZstdCompression()}),
	singleRow("produce one at a time, 1 producer", 1, 1_500),
	singleRow("produce one at a time, 64 producers", 64, 100),
	consumeRow("consume 100 B from the start", load{records: 200_000, size: 100, batch: 16 << 10, producers: 1}),
	consumeRow("consume 1 KiB from the start", load{records: 40_000, size: 1024, batch: 16 << 10, producers: 1}),
	tailRow("produce and consume at the tail, 100 B", load{records: 200_000, size: 100, batch: 16 << 10, producers: 1}),
	endToEndRow("end to end, 10,000 records/s of 100 B", 10_000, 3*time.Second).withRounds(5),
	commitRow("commit offsets, 64 consumers", 64, 300),
	httpRow("consume and acknowledge over HTTP, 100 B", 16, 6_000).withRounds(5),
	heartbeatRow("heartbeats, 1,000 groups of 10 members, every 3 s", 1_000, 10).once(),
	idleRow("10,000 idle connections", 10_000).once(),
}

// BenchmarkKafka prints a table with the medians of the rounds. A row that fails is
// reported and the following rows still run.
func BenchmarkKafka(b *testing.B) {
	own := startFreshet(b)
	brokers := []*broker{own}
	if script := os.Getenv("FRESHET_BENCH_KAFKA"); script != "" {
		brokers = append(brokers, startKafka(b, script, "Kafka"),
			startKafka(b, script, "Kafka, flush.messages=1", "flush.messages=1"))
	} else {
		fmt.Println("Apache Kafka is NOT MEASURED: FRESHET_BENCH_KAFKA does not name hack/kafka-peer.sh")
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
	count, warm := cmp.Or(rows[i].rounds, rounds), 1
	if rows[i].cold {
		warm = 0
	}
	for round := range warm + count {
		for n, s := range variants {
			got, err := s.run(b, fmt.Sprintf("row-%d-%d-%d", i, round, n), nil)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if round >= warm {
				samples[n] = append(samples[n], got)
			}
		}
	}
	fmt.Printf("%-50s %10s %6s %10s %6s %7s %10s %10s\n", rows[i].name, "µs/record", "ratio", "records/s", "ratio",
		"cores", "p50", "p99")
	cpu := func(s sample) float64 { return s.cpu.Seconds() * 1e6 / float64(s.records) }
	rate := func(s sample) float64 { return float64(s.records) / s.took.Seconds() }
	own, fast := median(samples[0], cpu), median(samples[0], rate)
	for n, s := range variants {
		c, f := median(samples[n], cpu), median(samples[n], rate)
		middle := func(of func(sample) time.Duration) time.Duration {
			return time.Duration(median(samples[n], func(s sample) float64 { return float64(of(s)) })).Round(
				10 * time.Microsecond)
		}
		fmt.Printf("  %-48s %10.2f %6.2f %10.0f %6.2f %7.3f %10s %10s %s\n", s.name, c, own/c, f, fast/f,
			median(samples[n], func(s sample) float64 { return s.cpu.Seconds() / s.took.Seconds() }),
			middle(func(s sample) time.Duration { return s.p50 }),
			middle(func(s sample) time.Duration { return s.p99 }),
			samples[n][len(samples[n])-1].note)
	}
	return nil
}

func median(list []sample, of func(sample) float64) float64 {
	values := make([]float64, len(list))
	for i := range list {
		values[i] = of(list[i])
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}
