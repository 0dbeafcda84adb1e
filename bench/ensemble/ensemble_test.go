// Package ensemble compares an ensemble of three members with a single server, in one run
// on the same cores: CPU time of all server processes per message, message rate, and
// memory of the idle members. `make bench-ensemble` runs it.
//
//   - ensemble_test.go: starts both targets and measures them alternately.
//   - rows_test.go: the kinds of load.
//   - payload_test.go: the messages: realistic events and incompressible random bytes.
//   - profile_test.go: CPU profiles of the members.
package ensemble

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/bench/process"
	"freshet/test/ensemble/chaos"
	"freshet/test/poll"
	"freshet/test/rawhttp"
	"freshet/test/testserver"
)

const rounds = 3

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// target is one measured target: a single server or an ensemble.
type target struct {
	name, token string
	pids        []int
	ops         []string // base URLs of the members' profile endpoints; unset for a single server
	kafka       []string // Kafka bootstrap addresses
	addresses   []string
	connections []*rawhttp.Connection
}

func (s *target) cpu(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, pid := range s.pids {
		used, err := process.CPU(pid)
		if err != nil {
			b.Fatal(err)
		}
		sum += used
	}
	return sum
}

// measure runs the row's calls and returns the CPU time of all server processes and the
// elapsed time.
func (s *target) measure(b *testing.B, r *row) (cpu, took time.Duration) {
	b.Helper()
	s.connect(b, r.connections)
	before, began := s.cpu(b), time.Now()
	if err := r.run(b.Context(), s); err != nil {
		b.Error(err)
	}
	return s.cpu(b) - before, time.Since(began)
}

// connect replaces the open connections by n new ones, distributed over the addresses.
func (s *target) connect(b *testing.B, n int) {
	b.Helper()
	s.disconnect()
	for i := range n {
		// i/topics, not i: the member that a connection uses must not correlate with its topic.
		c, err := rawhttp.Dial(strings.TrimPrefix(s.addresses[i/topics%len(s.addresses)], "http://"))
		if err != nil {
			b.Fatal(err)
		}
		s.connections = append(s.connections, c)
	}
}

func (s *target) disconnect() {
	for _, c := range s.connections {
		_ = c.Close()
	}
	s.connections = nil
}

// prepare creates the topics and their subscriptions.
func (s *target) prepare(b *testing.B) {
	b.Helper()
	b.Cleanup(s.disconnect)
	s.connect(b, 1)
	for i := range topics {
		path := fmt.Sprintf("/admin/v2/persistent/public/default/%s/subscription/s", topic(i))
		request := rawhttp.Request(http.MethodPut, path, s.token, asJSON, "")
		poll.Until(b, time.Minute, "topic that is created", func() bool { // 503 while a shard has no owner yet
			return expect(s.connections[0], request, http.StatusNoContent) == nil
		})
	}
}

// start starts a single server and an ensemble, and creates the topics in both.
func start(b *testing.B) (single, ensemble *target) {
	b.Helper()
	alone, err := testserver.Start(b.Context(), binary, b.TempDir(), testserver.Options{Kafka: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(alone.Kill)
	g, err := chaos.NewEnsemble(b.Context(), chaos.EnsembleOptions{Binary: binary, Dir: b.TempDir()}, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := g.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	single = &target{
		name: "alone", token: alone.Token, pids: []int{alone.PID()}, kafka: []string{alone.Kafka},
		addresses: []string{alone.URL},
	}
	ensemble = &target{name: "three members", token: g.Members[0].Token()}
	for _, m := range g.Members {
		ensemble.pids, ensemble.addresses = append(ensemble.pids, m.PID()), append(ensemble.addresses, m.URL)
		ensemble.ops, ensemble.kafka = append(ensemble.ops, m.Ops()), append(ensemble.kafka, m.Kafka)
		resident, err := process.Resident(m.PID())
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("member %s idle: %d MB resident", m.Name, resident>>20)
	}
	single.prepare(b)
	ensemble.prepare(b)
	return single, ensemble
}

// selectedRows returns the rows whose names contain a part listed in FRESHET_BENCH_ROWS; without it, all rows.
func selectedRows() []row {
	parts := os.Getenv("FRESHET_BENCH_ROWS")
	return slices.DeleteFunc(rows(), func(r row) bool {
		return parts != "" &&
			!slices.ContainsFunc(strings.Split(parts, ";"),
				func(part string) bool { return strings.Contains(r.name, part) })
	})
}

// BenchmarkEnsemble measures both targets alternately and reports the best of the rounds.
func BenchmarkEnsemble(b *testing.B) {
	single, ensemble := start(b)
	b.Logf("%-26s %14s %14s %14s %14s %7s", "", "alone µs/msg", "alone msg/s", "three µs/msg", "three msg/s", "ratio")
	for _, r := range selectedRows() {
		best := map[*target][2]float64{}
		for range rounds {
			for _, s := range []*target{single, ensemble} {
				cpu, took := s.measure(b, &r)
				cost, rate := float64(cpu.Microseconds())/float64(r.messages), float64(r.messages)/took.Seconds()
				if old, ok := best[s]; !ok || cost < old[0] {
					best[s] = [2]float64{cost, max(rate, old[1])}
				}
			}
		}
		ratio := best[ensemble][0] / best[single][0]
		b.Logf("%-26s %14.1f %14.0f %14.1f %14.0f %7.2f", r.name, best[single][0], best[single][1], best[ensemble][0],
			best[ensemble][1], ratio)
		b.ReportMetric(ratio, "x/"+strings.NewReplacer(" ", "-", ",", "").Replace(r.name))
	}
	if dir := os.Getenv("FRESHET_BENCH_PROFILES"); dir != "" {
		profile(b, ensemble, dir)
	}
}
