package messages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/test/testserver"
)

const (
	producers = 64
	consumers = 64
	topicPath = "/admin/rest/topics/v1/public/default/survivor"
)

// TestNothingIsLostWhenTheServerIsKilled kills the server every few seconds. Every message
// that got 201 is consumed at least once, messages of a key keep their order, and no message
// is consumed that was not sent. FRESHET_MESSAGES and FRESHET_KILLS extend the test (50,000
// and 10 for a release).
func TestNothingIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	w := &world{
		t: t, total: number("FRESHET_MESSAGES", 6_000), kills: number("FRESHET_KILLS", 3),
		sent: map[string]names.MessageID{}, seen: map[string]bool{},
	}
	w.run()
}

// TestFilteredSubscriptionOfAKilledServer is the same for a subscription with a filter: its consumers get every
// message that the filter selects, also those that were leased or read when the server was killed, and no other.
func TestFilteredSubscriptionOfAKilledServer(t *testing.T) {
	t.Parallel()
	w := &world{
		t: t, total: number("FRESHET_MESSAGES", 3_000), kills: number("FRESHET_KILLS", 2), filter: "int(key) % 3 == 0",
		sent: map[string]names.MessageID{}, seen: map[string]bool{},
	}
	w.run()
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// world is the server and the state of its clients. mu protects sent and seen.
type world struct {
	t            *testing.T
	total, kills int
	filter       string // of the subscription; selects the keys that are multiples of three
	binary, dir  string
	server       atomic.Pointer[testserver.Server]

	mu   sync.Mutex
	sent map[string]names.MessageID // payloads that got 201
	seen map[string]bool            // consumed payloads
	next atomic.Int64
}

func (w *world) run() {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	defer cancel()
	w.dir = w.t.TempDir()
	var err error
	if w.binary, err = testserver.Binary(ctx, w.dir); err != nil {
		w.t.Fatal(err)
	}
	server, err := testserver.Start(ctx, w.binary, w.dir, testserver.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.server.Store(server)
	defer func() { w.server.Load().Kill() }()
	w.must(ctx, http.MethodPut, "/admin/v2/persistent/public/default/survivor/partitions", []byte("4"))
	w.must(ctx, http.MethodPut, "/admin/v2/persistent/public/default/survivor/subscription/sub",
		fmt.Appendf(nil, `{"filter": %q}`, w.filter))

	var producing, others sync.WaitGroup
	for id := range producers {
		producing.Go(func() { w.produce(ctx, id) })
	}
	produced := make(chan struct{})
	go func() { producing.Wait(); close(produced) }()
	consuming, stop := context.WithCancel(ctx)
	for range consumers {
		others.Go(func() { w.consume(consuming) })
	}
	w.killRepeatedly(ctx, produced)
	<-produced
	w.drain(ctx)
	stop()
	others.Wait()
	w.check()
}

// killRepeatedly distributes the kills over the time of producing.
func (w *world) killRepeatedly(ctx context.Context, produced <-chan struct{}) {
	for i := range w.kills {
		at := int64(w.total * (i + 1) / (w.kills + 1))
		for w.next.Load() < at {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-produced:
				return
			case <-ctx.Done():
				return
			}
		}
		old := w.server.Load()
		old.Kill()
		fresh, err := testserver.Start(ctx, w.binary, w.dir, testserver.Options{DataDir: old.DataDir})
		if err != nil {
			w.t.Errorf("restart after kill %d: %v", i+1, err)
			return
		}
		w.server.Store(fresh)
	}
}

// produce sends the messages of one key in sequence, and retries attempts with an unknown
// outcome.
func (w *world) produce(ctx context.Context, id int) {
	for seq := 0; int(w.next.Add(1)) <= w.total && ctx.Err() == nil; seq++ {
		payload := fmt.Sprintf("%d:%d", id, seq)
		for ctx.Err() == nil {
			status, body, _, err := w.call(ctx, http.MethodPost, topicPath+"/message", []byte(payload),
				"Content-Type", "application/octet-stream", "X-Msg-Partition-Key", strconv.Itoa(id))
			if err == nil && status == http.StatusCreated {
				w.noteSent(payload, body)
				break
			}
			if err == nil && status < 500 {
				w.t.Errorf("produce: got %d %s", status, body)
				return
			}
			pause(ctx)
		}
	}
}

func (w *world) noteSent(payload string, body []byte) {
	var text string
	if err := json.Unmarshal(body, &text); err != nil {
		w.t.Errorf("produce returned %s", body)
		return
	}
	id, err := names.ParseMessageID(text)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[payload] = id
}

func (w *world) consume(ctx context.Context) {
	for ctx.Err() == nil {
		status, body, header, err := w.call(ctx, http.MethodPost, topicPath+"/sub/message",
			[]byte(`{"timeoutMillis":500,"ackTimeoutMillis":3000}`), "Content-Type", "application/json")
		if err != nil || status >= 500 {
			pause(ctx)
			continue
		}
		if status != http.StatusOK {
			continue
		}
		w.mu.Lock()
		w.seen[string(body)] = true
		w.mu.Unlock()
		id := header.Get("X-Msg-Message-Id")
		// If the acknowledgement is lost, the message is redelivered.
		_, _, _, _ = w.call(ctx, http.MethodPut, topicPath+"/sub/message", []byte(id), "Content-Type",
			"application/json")
	}
}

// drain waits until all acknowledged messages have been consumed.
func (w *world) drain(ctx context.Context) {
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if len(w.missing()) == 0 {
			return
		}
		pause(ctx)
	}
}

func (w *world) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for payload := range w.sent {
		if !w.seen[payload] && w.selects(payload) {
			list = append(list, payload)
		}
	}
	return list
}

// selects reports whether the filter selects a message.
func (w *world) selects(payload string) bool {
	id, _, _ := split(payload)
	return w.filter == "" || id%3 == 0
}

func (w *world) check() {
	if lost := w.missing(); len(lost) > 0 {
		w.t.Errorf("%d of %d messages got 201 and were never consumed, for example %s", len(lost),
			len(w.sent), lost[0])
	}
	if len(w.sent) < w.total {
		w.t.Errorf("only %d of %d messages were sent", len(w.sent), w.total)
	}
	for payload := range w.seen {
		id, seq, ok := split(payload)
		if !ok || id < 0 || id >= producers || seq < 0 || seq >= w.total {
			w.t.Errorf("message %q was consumed but never sent", payload)
		}
		if !w.selects(payload) {
			w.t.Errorf("message %q was consumed although the filter does not select it", payload)
		}
	}
	for payload, at := range w.sent {
		id, seq, _ := split(payload)
		before, ok := w.sent[fmt.Sprintf("%d:%d", id, seq-1)]
		if ok && (before.Partition != at.Partition || before.Entry >= at.Entry) {
			w.t.Errorf("key %d: message %d is at %v, message %d at %v", id, seq-1, before, seq, at)
		}
	}
	w.t.Logf("%d messages, %d kills: all consumed, in order", len(w.sent), w.kills)
}

func split(payload string) (id, seq int, ok bool) {
	left, right, ok := strings.Cut(payload, ":")
	id, idErr := strconv.Atoi(left)
	seq, seqErr := strconv.Atoi(right)
	return id, seq, ok && idErr == nil && seqErr == nil
}

func pause(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}

var client = &http.Client{
	Timeout:   30 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: producers + consumers},
}

func (w *world) call(ctx context.Context, method, path string, body []byte,
	header ...string,
) (int, []byte, http.Header, error) {
	server := w.server.Load()
	req, err := http.NewRequestWithContext(ctx, method, server.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+server.Token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	response, err := io.ReadAll(res.Body)
	return res.StatusCode, response, res.Header, err
}

func (w *world) must(ctx context.Context, method, path string, body []byte) {
	w.t.Helper()
	status, response, _, err := w.call(ctx, method, path, body, "Content-Type", "application/json")
	if err != nil || status != http.StatusNoContent {
		w.t.Fatalf("%s %s: %d %s %v, want %d", method, path, status, response, err, http.StatusNoContent)
	}
}
