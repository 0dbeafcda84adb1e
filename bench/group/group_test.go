// Package group measures what a group of three members costs beside a server that is
// alone, in one run on the same cores: the processor time of all server processes for
// each message, the rate, and the memory at rest. `make bench-group` runs it.
package group

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/bench/process"
	"freshet/test/cluster/chaos"
	"freshet/test/rawhttp"
	"freshet/test/testserver"
)

const (
	connections = 48
	topics      = 12 // so that every member owns some
	calls       = 100
	batchSize   = 100
	rounds      = 3
	root        = "/admin/rest/topics/v1/public/default/"
	asBytes     = "Accept: application/json\r\nContent-Type: application/octet-stream\r\n"
	asJSON      = "Accept: application/json\r\nContent-Type: application/json\r\n"
)

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// side is one server, or a group of them.
type side struct {
	name, token string
	pids        []int
	connections []*rawhttp.Connection
}

func (s *side) cpu(b *testing.B) (sum time.Duration) {
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

// row is a kind of call; do makes one on a connection's topic.
type row struct {
	name     string
	messages int
	do       func(s *side, c *rawhttp.Connection, topic string) error
}

func rows() []row {
	payload := strings.Repeat("x", 1024)
	one := `{"payload":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 1024)) + `"}`
	batch := `{"messages":[` + strings.Repeat(one+",", batchSize-1) + one + `]}`
	return []row{
		{"produce", 1, func(s *side, c *rawhttp.Connection, topic string) error {
			return expect(c, rawhttp.Request(http.MethodPost, root+topic+"/message", s.token, asBytes, payload), http.StatusCreated)
		}},
		{"consume and acknowledge", 1, func(s *side, c *rawhttp.Connection, topic string) error {
			path := root + topic + "/s/message"
			status, id, err := c.Send(rawhttp.Request(http.MethodPost, path, s.token, asJSON, `{"timeoutMillis":3000}`), "X-Msg-Message-Id")
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("consuming: status %d, %w", status, err)
			}
			return expect(c, rawhttp.Request(http.MethodPut, path, s.token, asJSON, id), http.StatusNoContent)
		}},
		{fmt.Sprintf("batch of %d", batchSize), batchSize, func(s *side, c *rawhttp.Connection, topic string) error {
			return expect(c, rawhttp.Request(http.MethodPost, root+topic+"/messages", s.token, asJSON, batch), http.StatusCreated)
		}},
	}
}

func expect(c *rawhttp.Connection, request []byte, want int) error {
	status, _, err := c.Send(request, "")
	if err == nil && status != want {
		err = fmt.Errorf("got status %d, want %d", status, want)
	}
	return err
}

// spend has every connection make its calls, and returns the processor time and the
// time that they took.
func (s *side) spend(b *testing.B, r *row, n int) (cpu, took time.Duration) {
	b.Helper()
	before, began := s.cpu(b), time.Now()
	var group sync.WaitGroup
	for i, c := range s.connections {
		group.Go(func() {
			for range n {
				if err := r.do(s, c, fmt.Sprintf("cost-%d", i%topics)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return s.cpu(b) - before, time.Since(began)
}

// connect opens connections, by turns to each address, and makes the topics.
func (s *side) connect(b *testing.B, addresses ...string) {
	b.Helper()
	for i := range connections {
		// A connection's topic and its member have nothing to do with each other.
		c, err := rawhttp.Dial(strings.TrimPrefix(addresses[i/topics%len(addresses)], "http://"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		s.connections = append(s.connections, c)
	}
	for i := range topics {
		path := fmt.Sprintf("/admin/v2/persistent/public/default/cost-%d/subscription/s", i)
		if err := expect(s.connections[0], rawhttp.Request(http.MethodPut, path, s.token, asJSON, ""), http.StatusNoContent); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGroup measures both sides by turns.
func BenchmarkGroup(b *testing.B) {
	alone, err := testserver.Start(b.Context(), binary, b.TempDir(), testserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(alone.Kill)
	g, err := chaos.NewGroup(b.Context(), chaos.GroupOptions{Binary: binary, Dir: b.TempDir()}, 1)
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
	single := &side{name: "alone", token: alone.Token, pids: []int{alone.PID()}}
	group := &side{name: "three members", token: g.Members[0].Token()}
	var addresses []string
	for _, m := range g.Members {
		group.pids, addresses = append(group.pids, m.PID()), append(addresses, m.URL)
		resident, err := process.Resident(m.PID())
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("member %s at rest: %d MB", m.Name, resident>>20)
	}
	single.connect(b, alone.URL)
	group.connect(b, addresses...)
	b.Logf("%-26s %14s %14s %14s %14s %7s", "", "alone µs/msg", "alone msg/s", "group µs/msg", "group msg/s", "ratio")
	for _, r := range rows() {
		n := max(calls/r.messages, 4)
		best := map[*side][2]float64{}
		for range rounds {
			for _, s := range []*side{single, group} {
				cpu, took := s.spend(b, &r, n)
				messages := float64(n * r.messages * connections)
				cost, rate := float64(cpu.Microseconds())/messages, messages/took.Seconds()
				if old, ok := best[s]; !ok || cost < old[0] {
					best[s] = [2]float64{cost, max(rate, old[1])}
				}
			}
		}
		ratio := best[group][0] / best[single][0]
		b.Logf("%-26s %14.1f %14.0f %14.1f %14.0f %7.2f", r.name, best[single][0], best[single][1], best[group][0], best[group][1], ratio)
		b.ReportMetric(ratio, "x/"+strings.ReplaceAll(r.name, " ", "-"))
	}
}
