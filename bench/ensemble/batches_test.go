package ensemble

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/bench/process"
	"freshet/test/ensemble/chaos"
)

const (
	// loadTime is how long the producers of BenchmarkEnsembleBatches run in a round.
	loadTime = 20 * time.Second
	// sampleInterval is the interval between two samples of the members' memory.
	sampleInterval = 200 * time.Millisecond
	// starvedNice is the priority of starved members: each gets a tenth of a busy processor.
	starvedNice = 10
)

// batchSizes are the sizes of the producers' batches.
var batchSizes = []int{256 << 10, 4 << 20}

// BenchmarkEnsembleBatches has Kafka producers write incompressible messages of 1 KiB in batches of
// 256 KiB and of 4 MiB, as fast as they can, once with the members at normal priority and once with the
// members behind busy processes. It reports what grows when a member is too slow for its load: memory,
// bytes written for each message, appends of the log that were sent twice, and seconds with few messages.
//
// FRESHET_BEFORE is the binary of another build, which is measured in turn.
func BenchmarkEnsembleBatches(b *testing.B) {
	of := random()
	builds := []struct{ name, binary string }{{"this build", binary}}
	if before := os.Getenv("FRESHET_BEFORE"); before != "" {
		builds = append(builds, struct{ name, binary string }{"before", before})
	}
	b.Logf("%-30s %9s %14s %14s %12s %8s %8s", "", "msg/s", "slowest second", "KB written/msg", "MB resident",
		"asked", "resent")
	for _, size := range batchSizes {
		for _, starved := range []bool{false, true} {
			for _, build := range builds {
				name := fmt.Sprintf("%s, %d KiB", build.name, size>>10)
				if starved {
					name += ", starved"
				}
				measureBatches(b, name, build.binary, of, size, starved)
			}
		}
	}
}

// measureBatches starts an ensemble of a build, applies the load, and reports it as a row.
func measureBatches(b *testing.B, name, binary string, of *kind, size int, starved bool) {
	b.Helper()
	g, err := chaos.NewEnsemble(b.Context(), chaos.EnsembleOptions{Binary: binary, Dir: b.TempDir()}, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			b.Error(err)
		}
	}()
	if err := g.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	s := &target{name: name, token: g.Members[0].Token()}
	for _, m := range g.Members {
		s.pids, s.addresses = append(s.pids, m.PID()), append(s.addresses, m.URL)
		s.ops, s.kafka = append(s.ops, m.Ops()), append(s.kafka, m.Kafka)
	}
	s.prepare(b)
	ctx, cancel := context.WithTimeout(b.Context(), loadTime)
	defer cancel()
	if starved {
		for _, pid := range s.pids {
			if err := process.Renice(pid, starvedNice); err != nil {
				b.Fatal(err)
			}
		}
		occupy(ctx)
	}
	before := s.written(b)
	var acked atomic.Int64
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			if err := produceBatches(ctx, s, of, i, size, &acked); err != nil {
				b.Error(err)
			}
		})
	}
	resident, counted := s.watch(ctx, b, &acked)
	rate, slowest := float64(acked.Load())/loadTime.Seconds(), slowestSecond(counted)
	wg.Wait() // every message is written, also those of the last moment
	wrote := float64(s.written(b)-before) / float64(len(s.pids)) / float64(max(1, acked.Load()))
	b.Logf("%-30s %9.0f %14.0f %14.1f %12d %8.0f %8.0f", name, rate, slowest, wrote/1000, resident>>20,
		s.metric(b, "freshet_log_asked_appends_total"), s.metric(b, "freshet_log_resent_appends_total"))
	b.Logf("  messages in each second:%s", eachSecond(counted))
	unit := strings.NewReplacer(" ", "-", ",", "").Replace(name)
	b.ReportMetric(rate, "msg/s/"+unit)
	b.ReportMetric(slowest, "slowest-msg/s/"+unit)
	b.ReportMetric(float64(resident>>20), "MB/"+unit)
}

// count is the number of messages that were acknowledged until a moment.
type count struct {
	at       time.Time
	messages int64
}

// perSecond is the number of samples in a second.
const perSecond = int(time.Second / sampleInterval)

// rateSince returns the messages per second since an earlier count. A sample can be late on a busy machine.
func (c count) rateSince(earlier count) float64 {
	return float64(c.messages-earlier.messages) / c.at.Sub(earlier.at).Seconds()
}

// slowestSecond returns the lowest rate of any second after the first acknowledgement, in messages per second. Until
// then the producers connect.
func slowestSecond(counted []count) float64 {
	slowest := -1.0
	first := slices.IndexFunc(counted, func(c count) bool { return c.messages > 0 })
	for i := max(0, first) + perSecond; i < len(counted); i++ {
		if rate := counted[i].rateSince(counted[i-perSecond]); slowest < 0 || rate < slowest {
			slowest = rate
		}
	}
	return slowest
}

// eachSecond lists the rates of successive seconds.
func eachSecond(counted []count) string {
	var list strings.Builder
	for i := perSecond; i < len(counted); i += perSecond {
		fmt.Fprintf(&list, " %.0f", counted[i].rateSince(counted[i-perSecond]))
	}
	return list.String()
}

// watch samples the members until the context ends. It returns the largest memory of a member, and the
// acknowledged messages at each sample.
func (s *target) watch(ctx context.Context, b *testing.B, acked *atomic.Int64) (resident int64, counted []count) {
	b.Helper()
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	dir, saved := os.Getenv("FRESHET_BENCH_PROFILES"), int64(0)
	for {
		counted = append(counted, count{time.Now(), acked.Load()})
		select {
		case <-ctx.Done():
			return resident, counted
		case <-tick.C:
		}
		for i, pid := range s.pids {
			now, err := process.Resident(pid)
			if err != nil {
				b.Error(err)
				return resident, counted
			}
			resident = max(resident, now)
			if dir != "" && now > saved+saved/4 {
				saved = now
				file := fmt.Sprintf("%s-%d-%dMB.heap", strings.ReplaceAll(s.name, " ", "-"), i, now>>20)
				if err := process.Save(ctx, s.ops[i]+"/debug/pprof/heap", filepath.Join(dir, file)); err != nil {
					b.Log(err)
				}
			}
		}
	}
}

// produceBatches runs a producer until the context ends, and then waits for its last messages.
func produceBatches(ctx context.Context, s *target, of *kind, producer, size int, acked *atomic.Int64) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka...), kgo.MaxBufferedRecords(4*size/1024+10_000),
		kgo.SASL(plain.Auth{User: "bench", Pass: s.token}.AsMechanism()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(int32(size)),
		kgo.ProducerLinger(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	var failed atomic.Pointer[error]
	for k := 0; ctx.Err() == nil && failed.Load() == nil; k++ {
		// A batch has this many messages, so a topic's messages are produced one after the other.
		batch := k / (size/1024 - size/1024/16)
		record := &kgo.Record{Topic: topic(producer + batch), Value: of.record(producer, k)}
		client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			acked.Add(1)
		})
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := client.Flush(flush); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("producing: %w", *err)
	}
	return nil
}

// occupy keeps all processors busy until the context ends.
func occupy(ctx context.Context) {
	for range 2 {
		go func() {
			for ctx.Err() == nil { // spinning is the purpose
			}
		}()
	}
}

// written returns the bytes that all members have written to storage.
func (s *target) written(b *testing.B) (sum int64) {
	b.Helper()
	for _, pid := range s.pids {
		n, err := process.Written(pid)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}

// metric returns the sum of a metric over all series and members; 0 when a build does not have it.
func (s *target) metric(b *testing.B, name string) (sum float64) {
	b.Helper()
	for _, ops := range s.ops {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, ops+"/metrics", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		res, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) == 2 && strings.HasPrefix(fields[0], name) {
				value, _ := strconv.ParseFloat(fields[1], 64)
				sum += value
			}
		}
		_ = res.Body.Close()
	}
	return sum
}
