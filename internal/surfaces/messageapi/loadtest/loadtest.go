// Package loadtest uses the message interface with many concurrent producers and
// consumers and checks the guarantees of a broker: it delivers every message that it has
// accepted, it delivers no other message, and messages of one key stay in order. It uses
// HTTP only and retries while the server restarts. Only tests import it. Its only lock
// is loadRun.mu, which protects the fields declared below it.
package loadtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/base/retry"
)

// Options configures a load test.
type Options struct {
	// BaseURL is called before every request, because a restarted server may have another
	// address.
	BaseURL      func() string
	Token        string
	Topic        string // a new topic of public/default
	Subscription string
	Partitions   int // 0 for a topic that is not partitioned
	Producers    int
	Consumers    int
	Messages     int // in total
	PayloadBytes int
	Client       *http.Client // nil for a client with one connection per producer and consumer
}

// Report is the result of a load test.
type Report struct {
	Produced    int // messages that got status 201
	Consumed    int // distinct delivered messages
	Redelivered int // deliveries after the first
	Retries     int64
	Elapsed     time.Duration
	Problems    []string // violated guarantees
}

const maxProblems = 20

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// loadRun is the state of one load test.
type loadRun struct {
	Options
	retries atomic.Int64

	mu        sync.Mutex                 // protects the fields below
	produced  map[string]names.MessageID // by the label in the payload
	delivered map[string]int
	acked     map[string]bool
	producing bool
}

// Run runs a load test. It ends when every message is delivered and acknowledged, or
// when ctx ends.
func Run(ctx context.Context, opts Options) (Report, error) {
	if opts.Client == nil {
		transport := &http.Transport{MaxIdleConnsPerHost: opts.Producers + opts.Consumers, DisableCompression: true}
		defer transport.CloseIdleConnections()
		opts.Client = &http.Client{Transport: transport}
	}
	r := &loadRun{
		Options: opts, producing: true,
		produced: make(map[string]names.MessageID), delivered: make(map[string]int), acked: make(map[string]bool),
	}
	if err := r.prepare(ctx); err != nil {
		return Report{}, err
	}
	began := time.Now()
	var producers, consumers sync.WaitGroup
	done, finish := context.WithCancel(ctx)
	defer finish()
	for i := range opts.Producers {
		producers.Go(func() { r.produce(ctx, i) })
	}
	for range opts.Consumers {
		consumers.Go(func() { r.consume(done, finish) })
	}
	producers.Wait()
	r.mu.Lock()
	r.producing = false
	complete := r.completeLocked()
	r.mu.Unlock()
	if complete {
		finish()
	}
	consumers.Wait()
	return r.report(time.Since(began)), ctx.Err()
}

func (r *loadRun) prepare(ctx context.Context) error {
	path := "/admin/v2/persistent/public/default/" + r.Topic
	create := path
	body := ""
	if r.Partitions > 0 {
		create, body = path+"/partitions", fmt.Sprint(r.Partitions)
	}
	for _, step := range []struct{ path, body string }{
		{create, body},
		{path + "/subscription/" + r.Subscription, `"earliest"`},
	} {
		status, _, response := r.callWithRetry(ctx, http.MethodPut, step.path, step.body)
		if status != http.StatusNoContent {
			return fmt.Errorf("PUT %s: status %d: %s", step.path, status, response)
		}
	}
	return nil
}

// call makes one request.
func (r *loadRun) call(ctx context.Context, method, path, body string,
	headers ...string,
) (int, http.Header, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.BaseURL()+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := r.Client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = res.Body.Close() }() // the body is read to its end below
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(b), err
}

const retryInterval = 20 * time.Millisecond

// callWithRetry retries a request until the status is below 500 or ctx ends.
func (r *loadRun) callWithRetry(ctx context.Context, method, path, body string,
	headers ...string,
) (int, http.Header, string) {
	for {
		status, header, response, err := r.call(ctx, method, path, body, headers...)
		if err == nil && status < http.StatusInternalServerError {
			return status, header, response
		}
		if ctx.Err() != nil {
			return status, header, response
		}
		r.retries.Add(1)
		_ = retry.Sleep(ctx, retryInterval)
	}
}

const base = "/admin/rest/topics/v1/persistent/public/default/"

// produce sends one producer's messages one after the other, all with the producer's
// key. A retry has the same idempotency key, so that a message whose response was lost is
// not stored twice.
func (r *loadRun) produce(ctx context.Context, producer int) {
	key := fmt.Sprintf("producer-%d", producer)
	for n := producer; n < r.Messages && ctx.Err() == nil; n += r.Producers {
		label := fmt.Sprintf("%s/%09d", key, n)
		payload := label + strings.Repeat(" ", max(r.PayloadBytes-len(label), 0))
		status, header, _ := r.callWithRetry(ctx, http.MethodPost, base+r.Topic+"/message", payload,
			"X-Msg-Partition-Key", key, "Idempotency-Key", r.Topic+"/"+label)
		if status != http.StatusCreated {
			continue // rejected, so it need not be delivered
		}
		id, err := names.ParseMessageID(header.Get("X-Msg-Message-String-Id"))
		if err != nil {
			continue
		}
		r.mu.Lock()
		r.produced[label] = id
		r.mu.Unlock()
	}
}

// consume consumes and acknowledges messages until every message has arrived.
func (r *loadRun) consume(ctx context.Context, finish func()) {
	path := base + r.Topic + "/" + r.Subscription + "/message"
	for ctx.Err() == nil {
		status, header, body, err := r.call(ctx, http.MethodPost, path, `{"timeoutMillis":1000}`)
		if ctx.Err() != nil {
			return
		}
		if err != nil || status >= http.StatusInternalServerError {
			r.retries.Add(1)
			_ = retry.Sleep(ctx, retryInterval)
			continue
		}
		if status == http.StatusNoContent {
			continue
		}
		label := strings.TrimRight(body, " ")
		r.mu.Lock()
		r.delivered[label]++
		r.mu.Unlock()
		if status, _, _ := r.callWithRetry(ctx, http.MethodPut, path,
			header.Get("X-Msg-Message-Id")); status != http.StatusNoContent {
			continue
		}
		r.mu.Lock()
		r.acked[label] = true
		complete := !r.producing && r.completeLocked()
		r.mu.Unlock()
		if complete {
			finish()
		}
	}
}

// completeLocked reports whether every produced message is acknowledged. The caller holds mu.
func (r *loadRun) completeLocked() bool {
	if len(r.acked) < len(r.produced) {
		return false
	}
	for label := range r.produced {
		if !r.acked[label] {
			return false
		}
	}
	return true
}

func (r *loadRun) report(elapsed time.Duration) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Report{Produced: len(r.produced), Consumed: len(r.delivered), Retries: r.retries.Load(), Elapsed: elapsed}
	for label, n := range r.delivered {
		out.Redelivered += n - 1
		if !strings.HasPrefix(label, "producer-") {
			out.problem("delivered but never produced: %.40q", label)
		}
	}
	for label := range r.produced {
		if r.delivered[label] == 0 {
			out.problem("lost: %s", label)
		}
	}
	for producer := range r.Producers {
		r.checkOrder(&out, producer)
	}
	return out
}

// checkOrder checks that a key's messages are in one partition, in the order in which
// they were sent.
func (r *loadRun) checkOrder(out *Report, producer int) {
	var last names.MessageID
	first := true
	for n := producer; n < r.Messages; n += r.Producers {
		label := fmt.Sprintf("producer-%d/%09d", producer, n)
		id, ok := r.produced[label]
		if !ok {
			continue
		}
		if !first && (id.Partition != last.Partition || id.Entry <= last.Entry) {
			out.problem("out of order: %s has id %s, the previous message %s", label, id, last)
		}
		last, first = id, false
	}
}
