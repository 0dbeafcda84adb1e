package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"freshet/test/stamp"
	"freshet/test/testserver"
)

const (
	topicName = "load"
	topic     = "/admin/rest/topics/v1/public/default/" + topicName
	objects   = "/apis/cloud.vendor.io/v1alpha1/namespaces/default"
)

// facts holds what the server has acknowledged.
type facts struct {
	sent     map[string]bool // payloads
	acked    map[string]bool // payloads, on subscription "worker"
	tried    map[string]bool // payloads that may be acknowledged: the response may have been lost
	schemas  map[string]int  // id by subject
	accounts map[string]bool
}

func (f *facts) clone() *facts {
	return &facts{
		maps.Clone(f.sent), maps.Clone(f.acked), maps.Clone(f.tried), maps.Clone(f.schemas),
		maps.Clone(f.accounts),
	}
}

func (f *facts) count() int { return len(f.sent) + len(f.acked) + len(f.schemas) + len(f.accounts) }

// load is a set of clients. mu protects facts.
type load struct {
	t      *testing.T
	server *testserver.Server
	name   string // part of the names that it uses
	budget chan struct{}

	mu    sync.Mutex
	facts facts

	stop context.CancelFunc
	done sync.WaitGroup
}

// startLoad starts to produce, consume, acknowledge, register schemas and create accounts.
// The number of messages is bounded, so that a test can read all of them again.
func startLoad(t *testing.T, server *testserver.Server, name string, messages int) *load {
	t.Helper()
	must(t, server, http.MethodPut, "/admin/v2/persistent/public/default/load/subscription/worker", "")
	must(t, server, http.MethodPut, "/admin/v2/persistent/public/default/load/subscription/witness", "")
	ctx, stop := context.WithCancel(t.Context())
	l := &load{t: t, server: server, name: name, stop: stop, budget: make(chan struct{}, messages), facts: facts{
		sent: map[string]bool{}, acked: map[string]bool{}, tried: map[string]bool{}, schemas: map[string]int{},
		accounts: map[string]bool{},
	}}
	for id := range 3 {
		l.done.Go(func() { l.each(ctx, id, l.produce) })
	}
	l.done.Go(func() { l.each(ctx, 0, l.consume) })
	l.done.Go(func() { l.each(ctx, 0, l.register) })
	l.done.Go(func() { l.each(ctx, 0, l.create) })
	return l
}

func (l *load) each(ctx context.Context, id int, do func(ctx context.Context, n string) bool) {
	for n := 0; ctx.Err() == nil; n++ {
		if !do(ctx, fmt.Sprintf("%s-%d-%d", l.name, id, n)) {
			return
		}
	}
}

// now returns what has been acknowledged so far.
func (l *load) now() *facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.clone()
}

// end stops the clients and returns what has been acknowledged.
func (l *load) end() *facts {
	l.stop()
	l.done.Wait()
	return l.now()
}

func (l *load) record(do func(*facts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(&l.facts)
}

func (l *load) call(ctx context.Context, method, path, body string) (int, http.Header, string) {
	status, header, text, err := call(ctx, l.server, l.server.Token, method, path, body)
	if err != nil {
		return 0, nil, "" // stopped or killed: the outcome is unknown
	}
	return status, header, text
}

func (l *load) produce(ctx context.Context, n string) bool {
	select {
	case l.budget <- struct{}{}:
	default:
		return false
	}
	payload := string(stamp.Make(topicName, n, len(l.budget), 100))
	if status, _, _ := l.call(ctx, http.MethodPost, topic+"/message", payload); status == http.StatusCreated {
		l.record(func(f *facts) { f.sent[payload] = true })
	}
	return true
}

func (l *load) consume(ctx context.Context, _ string) bool {
	status, header, payload := l.call(ctx, http.MethodPost, topic+"/worker/message", `{"timeoutMillis":200}`)
	if status != http.StatusOK {
		return true
	}
	l.record(func(f *facts) { f.tried[payload] = true })
	if status, _, _ := l.call(ctx, http.MethodPut, topic+"/worker/message",
		header.Get("X-Msg-Message-Id")); status/100 == 2 {
		l.record(func(f *facts) { f.acked[payload] = true })
	}
	return true
}

func (l *load) register(ctx context.Context, n string) bool {
	status, _, text := l.call(ctx, http.MethodPost, "/subjects/"+n+"/versions",
		fmt.Sprintf(`{"schema": "{\"type\":\"fixed\",\"size\":4,\"name\":\"f%d\"}"}`, len(n)))
	var response struct {
		ID int `json:"id"`
	}
	if status == http.StatusOK && json.Unmarshal([]byte(text), &response) == nil {
		l.record(func(f *facts) { f.schemas[n] = response.ID })
	}
	return true
}

func (l *load) create(ctx context.Context, n string) bool {
	status, _, _ := l.call(ctx, http.MethodPost, objects+"/serviceaccounts", fmt.Sprintf(`{"metadata":{"name":%q}}`, n))
	if status == http.StatusCreated {
		l.record(func(f *facts) { f.accounts[n] = true })
	}
	return true
}

// check checks that a server has everything that was acknowledged in before, and that it
// does not redeliver acknowledged messages. ever includes later operations. Messages of
// another topic count as foreign, damaged ones as wrong.
func check(t *testing.T, server *testserver.Server, before, ever *facts) (lost, foreign, wrong int) {
	t.Helper()
	complain := func(count *int, format string, args ...any) {
		if *count++; *count <= 5 {
			t.Errorf(format, args...)
		}
	}
	witness, worker := drain(t, server, "witness"), drain(t, server, "worker")
	for _, got := range []map[string]bool{witness, worker} {
		for payload := range got {
			switch _, err := stamp.Check([]byte(payload), topicName, stamp.AnyPartition); {
			case errors.Is(err, stamp.ErrForeign):
				complain(&foreign, "%v", err)
			case err != nil:
				complain(&wrong, "%v", err)
			}
		}
	}
	for payload := range before.sent {
		if !witness[payload] {
			complain(&lost, "message %.60q was acknowledged and is missing", payload)
		}
		if !worker[payload] && !ever.tried[payload] {
			complain(&lost, "message %.60q was not consumed and is not delivered", payload)
		}
	}
	for payload := range before.acked {
		if worker[payload] {
			complain(&wrong, "message %.60q was consumed and is delivered again", payload)
		}
	}
	for subject, id := range before.schemas {
		status, _, text, err := call(t.Context(), server, server.Token, http.MethodGet,
			"/subjects/"+subject+"/versions/1", "")
		var response struct {
			ID int `json:"id"`
		}
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &response) != nil ||
			response.ID != id {
			complain(&lost, "schema %s: got %d %v %s, want id %d", subject, status, err, text, id)
		}
	}
	accounts := must(t, server, http.MethodGet, objects+"/serviceaccounts", "")
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(accounts), &list); err != nil {
		t.Fatal(err)
	}
	existing := map[string]bool{}
	for _, item := range list.Items {
		existing[item.Metadata.Name] = true
	}
	for name := range before.accounts {
		if !existing[name] {
			complain(&lost, "account %s was created and is missing", name)
		}
	}
	return lost, foreign, wrong
}

// drain consumes all messages of a subscription.
func drain(t *testing.T, server *testserver.Server, subscription string) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]bool{}
	for range 8 {
		all.Go(func() {
			for {
				status, header, payload,
					err := call(t.Context(), server, server.Token, http.MethodPost, topic+"/"+subscription+"/message",
					`{"timeoutMillis":1}`)
				if err != nil || (status != http.StatusOK && status != http.StatusNoContent) {
					t.Errorf("consuming from %s: %d %v %s", subscription, status, err, payload)
					return
				}
				if status == http.StatusNoContent {
					return
				}
				mu.Lock()
				got[payload] = true
				mu.Unlock()
				_, _, _, _ = call(t.Context(), server, server.Token, http.MethodPut, topic+"/"+subscription+"/message",
					header.Get("X-Msg-Message-Id"))
			}
		})
	}
	all.Wait()
	return got
}
