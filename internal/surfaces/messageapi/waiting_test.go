package messageapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

// waiting returns how many consumers wait on the subscription s of a topic.
func (w *harness) waiting(topic string) int {
	w.T.Helper()
	var stats struct {
		Subscriptions map[string]struct{ WaitingConsumers int }
	}
	w.Call("GET", "/admin/v2/persistent/public/default/"+topic+"/stats", "").WantStatus(200).Decode(&stats)
	return stats.Subscriptions["s"].WaitingConsumers
}

// eventually polls a condition until it is true. It fails the test after a minute.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		runtime.Gosched()
	}
}

func TestLongPollReturnsTheFirstMessage(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 3)
	responses := make(chan *brokertest.Response, 1)
	go func() { responses <- w.Call("POST", topic+"/s/message", `{"timeoutMillis":60000}`) }()
	eventually(t, "the consumer waits", func() bool {
		var stats struct {
			Subscriptions map[string]struct{ WaitingConsumers int }
		}
		w.Call("GET", "/admin/v2/persistent/public/default/t/partitioned-stats", "").WantStatus(200).Decode(&stats)
		return stats.Subscriptions["s"].WaitingConsumers == 1
	})
	began := time.Now()
	w.Call("POST", topic+"/message", "x").WantStatus(201)
	(<-responses).WantStatus(200).WantBody("x")
	if took := time.Since(began); took >= time.Minute {
		t.Errorf("consume took %s after the message was produced, want less than its timeout of 60 s", took)
	}
}

func TestEmptyPollWaitsForItsTimeout(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	began := time.Now()
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":150}`).WantStatus(204).WantBody("")
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("empty poll took %s, want at least its timeout of 150ms", took)
	}
}

func TestShutdownEndsWaitingConsumers(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	responses := make(chan *brokertest.Response, 1)
	go func() { responses <- w.Call("POST", topic+"/s/message", `{"timeoutMillis":60000}`) }()
	eventually(t, "the consumer waits", func() bool { return w.waiting("t") == 1 })
	w.Broker.Drain()
	(<-responses).WantStatus(204)
}

func TestDisconnectedConsumerLosesNothing(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Server.URL+topic+"/s/message",
		strings.NewReader(`{"timeoutMillis":60000}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.Token)
	gone := make(chan error, 1)
	go func() {
		res, err := w.Server.Client().Do(req)
		if err == nil {
			res.Body.Close()
		}
		gone <- err
	}()
	eventually(t, "the consumer waits", func() bool { return w.waiting("t") == 1 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	eventually(t, "the server notices", func() bool { return w.waiting("t") == 0 })
	w.Call("POST", topic+"/message", "x").WantStatus(201)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(200).WantHeaders("X-Msg-Redelivery-Count", "0")
}

// brokenWriter is a response writer whose connection is broken.
type brokenWriter struct{ header http.Header }

func (b *brokenWriter) Header() http.Header       { return b.header }
func (b *brokenWriter) WriteHeader(int)           {}
func (b *brokenWriter) Write([]byte) (int, error) { return 0, errors.New("connection reset") }

// unflushableWriter is a response writer whose connection breaks at the flush.
type unflushableWriter struct{ *httptest.ResponseRecorder }

func (unflushableWriter) FlushError() error { return errors.New("connection reset") }

func TestUndeliveredMessageIsReturnedImmediately(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]http.ResponseWriter{
		"write fails": &brokenWriter{http.Header{}},
		"flush fails": unflushableWriter{httptest.NewRecorder()},
	} {
		for _, path := range []string{"/s/message", "/s/messages"} {
			w := newHarness(t, messaging.Options{})
			topic := w.CreateTopic("t", 0)
			w.Call("POST", topic+"/message", "x").WantStatus(201)
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, topic+path, nil)
			req.Header.Set("Authorization", "Bearer "+w.Token)
			w.API.ServeHTTP(client, req)
			got := w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`)
			if got.Status != 200 {
				t.Errorf("%s on %s: got status %d, want 200 with the message again", name, path, got.Status)
			}
		}
	}
}

func TestWaitingCostsNoGoroutine(t *testing.T) {
	// Not parallel: it counts goroutines.
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	const n = 100
	before := runtime.NumGoroutine()
	var consumers sync.WaitGroup
	for range n {
		consumers.Go(func() {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, topic+"/s/message",
				strings.NewReader(`{"timeoutMillis":60000}`))
			req.Header.Set("Authorization", "Bearer "+w.Token)
			res := httptest.NewRecorder()
			w.API.ServeHTTP(res, req)
			if res.Code != http.StatusNoContent {
				t.Errorf("got status %d, want %d", res.Code, http.StatusNoContent)
			}
		})
	}
	eventually(t, "all consumers wait", func() bool { return w.waiting("t") == n })
	if grown := runtime.NumGoroutine() - before; grown > n+10 {
		t.Errorf("%d waiting consumers have %d goroutines, want one each", n, grown)
	}
	w.Broker.Drain()
	consumers.Wait()
}

// event is one server-sent event.
type event struct {
	ID   string
	Name string
	Data struct {
		MessageID       string
		MessageStringID string
		Payload         any
		Encoding        string
		RedeliveryCount int
		PayloadSize     int
		Reason          string
	}
}

// listen opens a stream of events.
func (w *harness) listen(ctx context.Context, path string, headers ...string) (<-chan event, *http.Response) {
	w.T.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Server.URL+path, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.Token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	res, err := w.Server.Client().Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		w.T.Fatalf("GET %s: status %d, content type %s, want 200, text/event-stream", path, res.StatusCode,
			res.Header.Get("Content-Type"))
	}
	events := make(chan event, 100)
	go func() {
		defer close(events)
		defer res.Body.Close()
		var e event
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.ID = value
			case "event":
				e.Name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.Data); err != nil {
					w.T.Error(err)
				}
			case "":
				if e.Name != "" {
					events <- e
				}
				e = event{}
			}
		}
	}()
	return events, res
}

func next(t testing.TB, events <-chan event) event {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("stream ended, want an event")
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("got no event within 20s")
	}
	return event{}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	ctx, cancel := context.WithCancel(t.Context())
	events, _ := w.listen(ctx, topic+"/s/messages?credits=2&encoding=text")
	for i := range 5 {
		w.Call("POST", topic+"/message", fmt.Sprintf("line %d\nand more", i)).WantStatus(201)
	}
	first, second := next(t, events), next(t, events)
	if first.Data.Payload != "line 0\nand more" || first.ID != first.Data.MessageID || first.Name != "message" ||
		second.Data.Payload != "line 1\nand more" {
		t.Errorf("got events %+v and %+v, want message events with line 0 and line 1", first, second)
	}
	select {
	case e := <-events:
		t.Fatalf("got event %+v without credit, want none", e)
	case <-time.After(100 * time.Millisecond):
	}
	w.Call("PUT", topic+"/s/message", first.ID).WantStatus(204)
	if third := next(t, events); third.Data.Payload != "line 2\nand more" {
		t.Errorf("after an acknowledgement: got %+v, want line 2", third)
	}
	// When the connection ends, other consumers get the unacknowledged messages.
	cancel()
	got := map[string]bool{}
	eventually(t, "the messages come back", func() bool {
		r := w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`)
		if r.Status == 200 {
			got[r.Body] = true
		}
		return len(got) == 4
	})
}

func TestEventsEndWithTheServer(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	events, _ := w.listen(t.Context(), topic+"/s/messages", "X-Max-Unacked", "7")
	tail, _ := w.listen(t.Context(), topic+"/tail")
	w.Broker.Drain()
	for _, stream := range []<-chan event{events, tail} {
		select {
		case e, open := <-stream:
			if open {
				t.Errorf("got event %+v, want the end of the stream", e)
			}
		case <-time.After(20 * time.Second):
			t.Error("stream did not end within 20s after the broker drained")
		}
	}
}

func TestInvalidEventRequests(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	for path, status := range map[string]int{
		"/nobody/messages":               404,
		"/s/messages?credits=x":          400,
		"/s/messages?credits=-1":         400,
		"/s/messages?credits=1000000":    400,
		"/s/messages?ackTimeoutMillis=1": 400,
		"/s/messages?encoding=x":         400,
		"/tail?from=middle":              400,
		"/tail?since=x":                  400,
		"/tail?payloadLimit=-1":          400,
		"/tail?payloadLimit=x":           400,
		"/tail?last=0":                   400,
		"/tail?last=1001":                400,
		"/tail?last=x":                   400,
		"/tail?last=5&from=earliest":     400,
		"/tail?last=5&since=1":           400,
		"/tail?after=x":                  400,
		"/tail?after=99999:0:-1:0":       404,
	} {
		if r := w.Call("GET", topic+path, ""); r.Status != status {
			t.Errorf("%s: got status %d, want %d: %s", path, r.Status, status, r.Body)
		}
	}
	w.Call("GET", root+"public/default/nothing/tail", "").WantStatus(404)
}

func TestTail(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	first := w.Call("POST", topic+"/message", `{"n": 1}`).WantStatus(201)
	w.Call("POST", topic+"/message", "two").WantStatus(201)
	all, _ := w.listen(t.Context(), topic+"/tail?from=earliest&encoding=json")
	if e := next(t, all); e.Data.Encoding != "json" || fmt.Sprint(e.Data.Payload) != "map[n:1]" ||
		e.ID != first.MessageID() {
		t.Errorf("first event: got %+v, want JSON n=1 with id %s", e, first.MessageID())
	}
	if e := next(t, all); e.Data.Encoding != "base64" || e.Data.Payload != "dHdv" {
		t.Errorf("second event: got %+v, want dHdv in base64", e)
	}
	behind, _ := w.listen(t.Context(), topic+"/tail?encoding=text", "Last-Event-ID", first.MessageID())
	if e := next(t, behind); e.Data.Payload != "two" {
		t.Errorf("event after Last-Event-ID: got %+v, want two", e)
	}
	end, _ := w.listen(t.Context(), topic+"/tail?encoding=text")
	w.Call("POST", topic+"/message", "three").WantStatus(201)
	if e := next(t, end); e.Data.Payload != "three" {
		t.Errorf("event of a tail from the end: got %+v, want three", e)
	}
	for _, want := range []string{`{"n": 1}`, "two", "three"} { // the subscription was not affected
		w.Call("POST", topic+"/s/message", "").WantStatus(200).WantBody(want).WantHeaders("X-Msg-Redelivery-Count", "0")
	}
}

// TestTailTruncatesPayloads: with payloadLimit, a tail returns the beginning of large payloads
// and their size.
func TestTailTruncatesPayloads(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	large := strings.Repeat("x", 1<<20)
	w.Call("POST", topic+"/message", large).WantStatus(201)
	w.Call("POST", topic+"/message", "four").WantStatus(201)
	cut, _ := w.listen(t.Context(), topic+"/tail?from=earliest&encoding=text&payloadLimit=4")
	if e := next(t, cut); e.Data.Payload != "xxxx" || e.Data.PayloadSize != len(large) {
		t.Errorf("got %v of %d bytes, want xxxx of %d", e.Data.Payload, e.Data.PayloadSize, len(large))
	}
	if e := next(t, cut); e.Data.Payload != "four" || e.Data.PayloadSize != 0 {
		t.Errorf("payload below the limit: got %v and size %d, want four and no size", e.Data.Payload,
			e.Data.PayloadSize)
	}
	w.Call("POST", topic+"/s/message", "").WantStatus(200).WantBody(large) // consumers get the whole payload
}
