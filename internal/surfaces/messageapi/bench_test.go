package messageapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/storage/pebble"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/test/rawhttp"
)

// The benchmarks compare the surface with a bare net/http handler that reads the same
// requests and writes the same responses. Both are measured with the same client in the
// same run, in alternating slices. The store is on disk and every message is synced.
// ratio compares the wall time, cpu-ratio the CPU time, which is more robust on a busy
// machine.

const (
	benchConnections = 64
	benchSlice       = 64 // operations per connection in one slice
	benchPayload     = 1024
)

func dial(tb testing.TB, server *httptest.Server) *rawhttp.Connection {
	tb.Helper()
	c, err := rawhttp.Dial(server.Listener.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// benchHarness has a server with the surface over a store on disk, a server with a bare
// handler, and 64 connections to each.
type benchHarness struct {
	Broker     *messaging.Broker
	Token      string
	real, bare []*rawhttp.Connection
}

func newBenchHarness(b *testing.B, partitions int32, bare http.HandlerFunc) *benchHarness {
	b.Helper()
	eng, err := pebble.Open(b.TempDir(), pebble.Options{Logger: discardLogger})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = eng.Close() })
	broker, err := messaging.Open(b.Context(), eng, messaging.Options{Logger: discardLogger})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = broker.Close() })
	err = broker.Catalogue.CreateTopic(b.Context(), benchTopic, messaging.NewTopic{Partitions: partitions})
	if err != nil {
		b.Fatal(err)
	}
	if err := broker.Consumer.Subscribe(b.Context(), benchTopic, "s", messaging.Position{Kind: messaging.Earliest},
		nil); err != nil {
		b.Fatal(err)
	}
	identities := identitytest.New(b)
	account, _ := identities.Account(organization, "boss", func(a *identity.Account) { a.Admin = true })
	audience := identity.InstanceAudience(organization, instance)
	api := messageapi.New(messageapi.Options{Resolver: brokertest.Resolver(broker), Options: pipeline.Options{
		Authenticator: identities.Verifier, Authorizer: access.NewPolicy(),
	}})
	w := &benchHarness{Broker: broker, Token: identities.Token(account, audience)}
	serve := func(h http.Handler) (list []*rawhttp.Connection) {
		server := httptest.NewServer(h)
		b.Cleanup(server.Close)
		for range benchConnections {
			list = append(list, dial(b, server))
		}
		return list
	}
	w.real, w.bare = serve(web.Middleware(api, discardLogger, nil)), serve(bare)
	return w
}

var benchTopic = names.Topic{Namespace: names.PublicDefault, Local: "bench"}

// cost is wall time and CPU time.
type cost struct{ wall, cpu time.Duration }

func (c *cost) add(other cost) { c.wall, c.cpu = c.wall+other.wall, c.cpu+other.cpu }

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// slice runs one slice on every connection and returns its cost.
func slice(b *testing.B, connections []*rawhttp.Connection, op func(*rawhttp.Connection) error) cost {
	b.Helper()
	var group sync.WaitGroup
	began, cpu := time.Now(), cpuTime()
	for _, c := range connections {
		group.Go(func() {
			for range benchSlice {
				if err := op(c); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return cost{time.Since(began), cpuTime() - cpu}
}

// compare runs slices of both servers in turn and reports the results.
func compare(b *testing.B, w *benchHarness, prepare func(), op func(c *rawhttp.Connection, real bool) error) {
	b.Helper()
	var real, bare cost
	both := func() (cost, cost) {
		prepare()
		x := slice(b, w.bare, func(c *rawhttp.Connection) error { return op(c, false) })
		y := slice(b, w.real, func(c *rawhttp.Connection) error { return op(c, true) })
		return x, y
	}
	both() // warm up
	slices := 0
	for b.Loop() {
		x, y := both()
		bare.add(x)
		real.add(y)
		slices++
	}
	n := float64(slices * benchConnections * benchSlice)
	b.ReportMetric(n/bare.wall.Seconds(), "bare/s")
	b.ReportMetric(n/real.wall.Seconds(), "freshet/s")
	b.ReportMetric(bare.wall.Seconds()/real.wall.Seconds(), "ratio")
	b.ReportMetric(bare.cpu.Seconds()/real.cpu.Seconds(), "cpu-ratio")
	b.ReportMetric(float64(real.cpu.Microseconds())/n, "cpu-µs/op")
	b.ReportMetric(0, "ns/op")
}

var produceHeaders = "Accept: application/json\r\nContent-Type: application/octet-stream\r\n"

// bareProduce does only the HTTP work of a produce.
func bareProduce(w http.ResponseWriter, r *http.Request) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Msg-Message-Id", "CAIQACAAMAE=")
	h.Set("X-Msg-Message-String-Id", "2:0:-1:0")
	h.Set("Content-Length", "10")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`"2:0:-1:0"`))
}

func BenchmarkProduce(b *testing.B) {
	w := newBenchHarness(b, 0, bareProduce)
	payload := string(bytes.Repeat([]byte("x"), benchPayload))
	req := rawhttp.Request(http.MethodPost, root+"persistent/public/default/bench/message", w.Token,
		produceHeaders, payload)
	compare(b, w, func() {}, func(c *rawhttp.Connection, _ bool) error {
		status, _, err := c.Send(req, "")
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
}

// bareConsume responds like a consume or an acknowledgement.
func bareConsume(payload []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("X-Msg-Message-Id", "CAIQACAAMAE=")
		h.Set("X-Msg-Message-String-Id", "2:0:-1:0")
		h.Set("X-Msg-Sequence-Id", "0")
		h.Set("X-Msg-Publish-Time", "1700000000000")
		h.Set("X-Msg-Redelivery-Count", "0")
		h.Set("Content-Length", strconv.Itoa(len(payload)))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(payload)
	}
}

func BenchmarkConsumeAck(b *testing.B) {
	payload := bytes.Repeat([]byte("x"), benchPayload)
	w := newBenchHarness(b, 0, bareConsume(payload))
	path := root + "persistent/public/default/bench/s/message"
	take := rawhttp.Request(http.MethodPost, path, w.Token,
		"Accept: application/octet-stream\r\nContent-Type: application/json\r\n", `{"timeoutMillis":3000}`)
	batch := make([]messaging.Message, 512)
	for i := range batch {
		batch[i] = messaging.Message{Payload: payload, SchemaVersion: messaging.NoSchema}
	}
	fill := func() {
		for range benchConnections * benchSlice / len(batch) {
			if _, err := w.Broker.Producer.ProduceBatch(b.Context(), benchTopic, batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	compare(b, w, fill, func(c *rawhttp.Connection, _ bool) error {
		status, id, err := c.Send(take, "X-Msg-Message-Id")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("consuming: status %d, %w", status, err)
		}
		status, _, err = c.Send(rawhttp.Request(http.MethodPut, path, w.Token,
			"Accept: application/json\r\nContent-Type: application/json\r\n", id), "")
		if err != nil || status != http.StatusNoContent {
			return fmt.Errorf("acknowledging: status %d, %w", status, err)
		}
		return nil
	})
}

// discard is a response writer that discards the body.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) FlushError() error           { return nil }

// BenchmarkHandler measures one call without a network, for its allocations.
func BenchmarkHandler(b *testing.B) {
	w := newHarness(b, messaging.Options{})
	w.ValidateResponses = false
	topic := w.CreateTopic("t", 0)
	payload := bytes.Repeat([]byte("x"), benchPayload)
	call := func(method, path string, body []byte) http.Header {
		req := httptest.NewRequestWithContext(b.Context(), method, path, bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+w.Token)
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Content-Type", "application/octet-stream")
		res := &discard{http.Header{}}
		w.API.ServeHTTP(res, req)
		return res.header
	}
	b.Run("nothing", func(b *testing.B) { // the cost of the benchmark itself
		b.ReportAllocs()
		for b.Loop() {
			req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, topic+"/message",
				bytes.NewReader(payload))
			req.Header.Set("Authorization", "Bearer "+w.Token)
			req.Header.Set("Accept", "application/json")
			req.Header.Set("Content-Type", "application/octet-stream")
			(&discard{http.Header{}}).Header().Set("X", "y")
		}
	})
	b.Run("produce", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call(http.MethodPost, topic+"/message", payload)
		}
	})
	b.Run("consume+ack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			call(http.MethodPost, topic+"/message", payload)
			b.StartTimer()
			h := call(http.MethodPost, topic+"/s/message", []byte(`{"timeoutMillis":3000}`))
			call(http.MethodPut, topic+"/s/message", []byte(h["X-Msg-Message-Id"][0]))
		}
	})
}
