package goclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet.dev/client"
	"freshet/test/stamp"
	"freshet/test/tally"
	"freshet/test/testserver"
)

// loadBalancer is a load balancer in front of a server that changes its address with every start. While the
// server is down,
// it responds with 502.
type loadBalancer struct {
	next atomic.Pointer[httputil.ReverseProxy]
}

func (m *loadBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.next.Load().ServeHTTP(w, r)
}

func (m *loadBalancer) point(t *testing.T, to string) {
	t.Helper()
	target := must[*url.URL](t)(url.Parse(to))
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	m.next.Store(proxy)
}

const faultTopic = "faults"

// TestFaultServerKilled kills the server repeatedly while a producer and consumers run: every message that was
// acknowledged to the producer is stored exactly once and is handled.
func TestFaultServerKilled(t *testing.T) {
	t.Parallel()
	kills := 2
	if tally.Long() {
		kills = 10
	}
	dir := t.TempDir()
	data := t.TempDir()
	start := func() *testserver.Server {
		return must[*testserver.Server](t)(testserver.Start(t.Context(), binary, dir,
			testserver.Options{DataDir: data}))
	}
	current := start()
	defer func() { current.Kill() }()
	front := &loadBalancer{}
	front.point(t, current.URL)
	balancer := httptest.NewServer(front)
	defer balancer.Close()
	c := must[*client.Client](t)(
		client.New(client.Config{BaseURL: balancer.URL, TokenSource: client.StaticToken(current.Token)}))
	defer c.Close()
	topic := c.Topic(faultTopic)
	if err := topic.Create(t.Context(), client.TopicOptions{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	sub := topic.Subscription("s")
	if err := sub.Create(t.Context(), client.SubscriptionOptions{From: client.Earliest}); err != nil {
		t.Fatal(err)
	}
	sub.ReceiveOptions.Lease = 2 * time.Second

	load := newLoad(t, topic, sub)
	fault := tally.Fault{Name: "server killed under the Go client", Injected: kills}
	for range kills {
		load.progress(t, 200)
		current.Kill()
		current = start()
		front.point(t, current.URL)
		back := time.Now()
		load.progress(t, 1)
		fault.Recovery = max(fault.Recovery, time.Since(back))
	}
	stored := load.finish(t)
	fault.Checked = len(stored)
	handled, count := load.handledAll()
	for value := range stored {
		if !handled[value] {
			fault.Lost++
		}
	}
	seen := make(map[string]int)
	for received, err := range topic.Read(t.Context(), client.Earliest) {
		if err != nil {
			t.Fatal(err)
		}
		_, err := stamp.Check(received.Value, faultTopic, stamp.AnyPartition)
		count.Add(err)
		seen[string(received.Value)]++
	}
	for value, n := range seen {
		if n > 1 {
			t.Errorf("message %.60q is stored %d times", value, n)
			fault.Wrong++
		}
	}
	fault.Foreign = count.Foreign
	fault.Wrong += count.Damaged
	fault.Record(t)
}

// load produces and handles messages until finish is called.
type load struct {
	stopProducing context.CancelFunc // ends producing
	produced      sync.WaitGroup
	consumed      sync.WaitGroup
	stopConsuming context.CancelFunc // ends consuming
	signal        chan struct{}      // receives one value for each message that was handled for the first time

	mu      sync.Mutex
	stored  map[string]bool
	handled map[string]bool
	count   stamp.Count // of handled messages
}

func newLoad(t *testing.T, topic *client.Topic, sub *client.Subscription) *load {
	t.Helper()
	l := &load{signal: make(chan struct{}, 1<<20), stored: make(map[string]bool), handled: make(map[string]bool)}
	producing, stop := context.WithCancel(t.Context())
	consuming, leave := context.WithCancel(t.Context())
	l.stopProducing, l.stopConsuming = stop, leave
	l.produced.Go(func() { l.produce(producing, t, topic) })
	l.consumed.Go(func() {
		err := sub.Handle(consuming, 4, func(_ context.Context, d *client.Delivery) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			_, err := stamp.Check(d.Value, faultTopic, stamp.AnyPartition)
			l.count.Add(err)
			if !l.handled[string(d.Value)] {
				l.handled[string(d.Value)] = true
				l.signal <- struct{}{}
			}
			return nil
		})
		if err != nil {
			t.Errorf("Handle: %v", err)
		}
	})
	return l
}

// produce sends messages, 100 at a time, and waits until these are acknowledged before it sends the next 100.
func (l *load) produce(ctx context.Context, t *testing.T, topic *client.Topic) {
	p := topic.NewProducer(client.ProducerOptions{MaxBatch: 20})
	defer func() {
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	for n := 0; ctx.Err() == nil; n += 100 {
		for i := n; i < n+100; i++ {
			size := 100
			if i%20 == 0 {
				size = 8 << 10
			}
			value := string(stamp.Make(faultTopic, "producer", i, size))
			err := p.Send(t.Context(), client.Message{Value: []byte(value), Key: fmt.Sprint(i % 5)},
				func(_ client.Produced, err error) {
					if err != nil {
						t.Errorf("message %.60q: %v", value, err)
						return
					}
					l.mu.Lock()
					defer l.mu.Unlock()
					l.stored[value] = true
				})
			if err != nil {
				t.Errorf("Send: %v", err)
				return
			}
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Errorf("Flush: %v", err)
			return
		}
	}
}

// progress waits until n more messages were handled.
func (l *load) progress(t *testing.T, n int) {
	t.Helper()
	timeout := time.After(time.Minute)
	for range n {
		select {
		case <-l.signal:
		case <-timeout:
			t.Fatalf("%d messages were not handled within a minute", n)
		}
	}
}

// finish ends producing, waits until every message is handled, and returns the messages that were acknowledged to the
// producer.
func (l *load) finish(t *testing.T) map[string]bool {
	t.Helper()
	l.stopProducing()
	l.produced.Wait()
	timeout := time.After(time.Minute)
	for l.hasUnhandled() {
		select {
		case <-l.signal:
		case <-timeout:
			t.Fatal("some messages were not handled within a minute")
		}
	}
	l.stopConsuming()
	l.consumed.Wait()
	return l.stored
}

func (l *load) hasUnhandled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.handled) < len(l.stored)
}

func (l *load) handledAll() (map[string]bool, stamp.Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handled, l.count
}
