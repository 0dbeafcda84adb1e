package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"freshet.dev/client"
)

// sink stores produced messages, and skips a message whose idempotency key it has stored, as a topic does. If lossy is
// set, it stores the messages of every third call but loses the response. If away is set, every call fails.
type sink struct {
	mu          sync.Mutex
	calls       int
	lossy       bool
	unreachable bool
	stored      []string
	keys        map[string]bool
}

func (s *sink) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.unreachable {
		return nil, errors.New("connection reset by peer")
	}
	recorder := httptest.NewRecorder()
	if strings.HasSuffix(r.URL.Path, "/message") {
		var text [64]byte
		n, _ := r.Body.Read(text[:])
		s.store(r.Header.Get("Idempotency-Key"), string(text[:n]))
		recorder.WriteHeader(http.StatusCreated)
	} else {
		var body struct {
			Messages []struct {
				Payload        []byte `json:"payload"`
				IdempotencyKey string `json:"idempotencyKey"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
		var results []string
		for _, m := range body.Messages {
			if string(m.Payload) == "bad" {
				results = append(results, `{"status":400,"reason":"payload does not match the schema"}`)
				continue
			}
			s.store(m.IdempotencyKey, string(m.Payload))
			results = append(results, `{"status":201}`)
		}
		_, _ = fmt.Fprintf(recorder, `{"results":[%s]}`, strings.Join(results, ","))
	}
	if s.lossy && s.calls%3 == 0 {
		return nil, errors.New("connection reset by peer")
	}
	return recorder.Result(), nil
}

func (s *sink) store(key, value string) {
	if key == "" || !s.keys[key] {
		s.keys[key] = true
		s.stored = append(s.stored, value)
	}
}

func newSink() *sink { return &sink{keys: map[string]bool{}} }

func TestLostResponsesMakeNoDuplicates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink()
		s.lossy = true
		p := newClient(t, client.Config{Transport: s}).Topic("t").NewProducer(client.ProducerOptions{MaxBatch: 10})
		for i := range 500 {
			if err := p.Send(t.Context(), client.Message{Value: fmt.Append(nil, i)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.stored) != 500 {
			t.Fatalf("stored %d messages, want 500", len(s.stored))
		}
		for i, value := range s.stored {
			if value != fmt.Sprint(i) {
				t.Fatalf("at %d: got %s", i, value)
			}
		}
		if s.calls > 120 {
			t.Errorf("%d calls for 50 batches, want at most 120", s.calls)
		}
	})
}

func TestOneBadMessageFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink()
		p := newClient(t, client.Config{Transport: s}).Topic("t").NewProducer(client.ProducerOptions{})
		var failed []error
		for _, value := range []string{"good", "bad", "good"} {
			if err := p.Send(t.Context(), client.Message{Value: []byte(value)},
				func(_ client.Produced, err error) { failed = append(failed, err) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(failed) != 3 || failed[0] != nil || !errors.Is(failed[1], client.ErrInvalid) || failed[2] != nil {
			t.Errorf("got %v, want an error for the second message only", failed)
		}
	})
}

func TestProducerWithoutServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink()
		s.unreachable = true
		p := newClient(t, client.Config{Transport: s}).Topic("t").NewProducer(
			client.ProducerOptions{MaxBuffered: 2, MaxBatch: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var last error
		for range 10 { // the buffer takes two messages, a call in flight one; then Send blocks
			last = p.Send(ctx, client.Message{Value: []byte("v")}, nil)
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("Send with a full buffer: got %v, want DeadlineExceeded", last)
		}
		begin := time.Now()
		ending, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := p.Close(ending); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: got %v, want DeadlineExceeded", err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("Close took %s, want the 3 s of its context", took)
		}
	})
}

func TestFlushReturnsTheFirstError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink()
		s.unreachable = true
		p := newClient(t, client.Config{Transport: s}).Topic("t").NewProducer(
			client.ProducerOptions{DeliveryTimeout: 10 * time.Second})
		defer p.Close(t.Context())
		if err := p.Send(t.Context(), client.Message{Value: []byte("v")}, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Flush(t.Context()); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		s.mu.Lock()
		s.unreachable = false
		s.mu.Unlock()
		if _, err := p.Produce(t.Context(), client.Message{Value: []byte("v")}); err != nil {
			t.Errorf("Produce after the outage: got %v", err)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Errorf("second Flush returned the error again: %v", err)
		}
	})
}
