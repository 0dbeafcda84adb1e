// Package messages measures the cost of the message API of the real binary: the CPU
// time of the server process per call, compared with a bare net/http server in its own
// process. `make bench-messages` runs it.
package messages

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/bench/process"
	"freshet/test/rawhttp"
	"freshet/test/testserver"
)

const (
	connections  = 64
	rounds       = 5
	calls        = 192 // per connection and round
	batchSize    = 100
	topic        = "/admin/rest/topics/v1/public/default/cost"
	subscription = "s"
)

// payload is the message of every row that does not set its own size.
var payload = strings.Repeat("x", 1024)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv(bareEnv) != "" {
		if err := serveBare(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testserver.Main(m, &binary)
}

// target is one of the two measured servers.
type target struct {
	token       string
	pid         int
	connections []*rawhttp.Connection
}

func connect(b *testing.B, address, token string, pid int) *target {
	b.Helper()
	s := &target{token: token, pid: pid}
	for range connections {
		c, err := rawhttp.Dial(address)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		s.connections = append(s.connections, c)
	}
	return s
}

// row is a kind of call.
type row struct {
	name     string
	calls    int // per connection and round
	messages int // per call
	do       func(s *target, c *rawhttp.Connection) error
}

const (
	consumeRow     = "consume and acknowledge"
	produceHeaders = "Accept: application/json\r\nContent-Type: application/octet-stream\r\n"
	consumeHeaders = "Accept: application/octet-stream\r\nContent-Type: application/json\r\n"
	jsonHeaders    = "Accept: application/json\r\nContent-Type: application/json\r\n"
)

// rows returns the kinds of calls, in order: the second consumes what the first produces.
func rows(token string) []row {
	produce := rawhttp.Request(http.MethodPost, topic+"/message", token, produceHeaders, payload)
	consume := rawhttp.Request(http.MethodPost, topic+"/"+subscription+"/message", token, consumeHeaders,
		`{"timeoutMillis":3000}`)
	list := []row{
		{"produce", calls, 1, func(_ *target, c *rawhttp.Connection) error {
			return expect(c, produce, http.StatusCreated)
		}},
		{consumeRow, calls, 1, func(s *target, c *rawhttp.Connection) error {
			status, id, err := c.Send(consume, "X-Msg-Message-Id")
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("consuming: status %d, %w", status, err)
			}
			return expect(c, rawhttp.Request(http.MethodPut, topic+"/"+subscription+"/message", s.token, jsonHeaders,
				id), http.StatusNoContent)
		}},
	}
	for _, size := range []int{100, 1024} {
		batch := rawhttp.Request(http.MethodPost, topic+"/messages", token, jsonHeaders, batchOf(size))
		list = append(list, row{
			fmt.Sprintf("batch of %d, %d B each", batchSize, size), calls / 16, batchSize,
			func(_ *target, c *rawhttp.Connection) error {
				return expect(c, batch, http.StatusCreated)
			},
		})
	}
	return list
}

func batchOf(size int) string {
	one := `{"payload":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), size)) + `"}`
	return `{"messages":[` + strings.Repeat(one+",", batchSize-1) + one + `]}`
}

func expect(c *rawhttp.Connection, request []byte, want int) error {
	status, _, err := c.Send(request, "")
	if err == nil && status != want {
		err = fmt.Errorf("got status %d, want %d", status, want)
	}
	return err
}

// measure lets every connection make its calls and returns the CPU time that the server
// spent on them.
func (s *target) measure(b *testing.B, r *row) time.Duration {
	b.Helper()
	before := cpuTime(b, s.pid)
	var wg sync.WaitGroup
	for _, c := range s.connections {
		wg.Go(func() {
			for range r.calls {
				if err := r.do(s, c); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return cpuTime(b, s.pid) - before
}

func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	d, err := process.CPU(pid)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// BenchmarkServerCost prints, for each kind of call, the medians of the rounds; the two
// servers take turns.
func BenchmarkServerCost(b *testing.B) {
	server, err := testserver.Start(b.Context(), binary, b.TempDir(), testserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Kill)
	other := startBare(b)
	real := connect(b, strings.TrimPrefix(server.URL, "http://"), server.Token, server.PID())
	bare := connect(b, other.address, server.Token, other.pid)
	subscribe := rawhttp.Request(http.MethodPut, "/admin/v2/persistent/public/default/cost/subscription/"+subscription,
		server.Token, jsonHeaders, "")
	if err := expect(real.connections[0], subscribe, http.StatusNoContent); err != nil {
		b.Fatal(err)
	}
	list := rows(server.Token)
	costs := make(map[string][2][]time.Duration)
	for b.Loop() {
		for round := range rounds + 1 {
			for i := range list {
				r := &list[i]
				x, y := bare.measure(b, r), real.measure(b, r)
				if round == 0 || b.Failed() {
					continue // warm-up round
				}
				c := costs[r.name]
				costs[r.name] = [2][]time.Duration{append(c[0], x), append(c[1], y)}
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	if dir := os.Getenv("FRESHET_BENCH_PROFILES"); dir != "" {
		profile(b, real, server.Ops, dir, list)
	}
	fmt.Printf("\n%-26s %12s %12s %8s %14s\n", "server process, µs", "bare/call", "Freshet/call", "ratio",
		"per message")
	for _, r := range list {
		each := float64(r.calls * connections)
		x, y := median(costs[r.name][0]), median(costs[r.name][1])
		perCall := func(d time.Duration) float64 { return float64(d.Microseconds()) / each }
		fmt.Printf("%-26s %12.1f %12.1f %8.2f %14.2f\n", r.name, perCall(x), perCall(y), y.Seconds()/x.Seconds(),
			perCall(y)/float64(r.messages))
	}
}

// profile saves a CPU profile of the server for each kind of call.
func profile(b *testing.B, s *target, ops, dir string, list []row) {
	b.Helper()
	for i := range list {
		done := make(chan error, 1)
		go func() {
			done <- process.Save(b.Context(), ops+"/debug/pprof/profile?seconds=4",
				filepath.Join(dir, fmt.Sprintf("%d.pprof", i)))
		}()
		for saved := false; !saved; {
			if list[i].name == consumeRow { // produce messages to consume first
				s.measure(b, &list[0])
			}
			s.measure(b, &list[i])
			select {
			case err := <-done:
				if err != nil {
					b.Error(err)
				}
				saved = true
			default:
			}
		}
	}
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.SortFunc(list, cmp.Compare[time.Duration])
	return list[len(list)/2]
}
