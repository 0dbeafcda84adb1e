package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/test/stamp"
	"freshet/test/tally"
	"freshet/test/testserver"
)

const (
	mixedTopics = 3
	accounts    = "/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts"
	asJSON      = "application/json"
	asBytes     = "application/octet-stream"
)

// mixedTopic returns the name of a topic, mixedPath its path.
func mixedTopic(n int) string { return fmt.Sprintf("mixed-%d", n%mixedTopics) }

func mixedPath(topic string) string { return "/admin/rest/topics/v1/public/default/" + topic }

// mixed is a load of every kind of write, with its acknowledged operations. mu protects the maps.
type mixed struct {
	*world
	done    atomic.Int64 // acknowledged operations
	foreign atomic.Int64 // messages delivered under another topic
	wrong   atomic.Int64 // responses that were neither correct nor a server error

	mu       sync.Mutex
	produced map[string]bool   // payloads that got 201
	acked    map[string]bool   // payloads whose acknowledgement got 204
	schemas  map[string]int32  // text to id
	created  map[string]string // name to uid
}

// TestFaultKill kills the server repeatedly under a load of produces, acknowledgements,
// schema registrations and resource creations. Everything acknowledged exists in the end,
// and messages acknowledged as consumed are not redelivered.
func TestFaultKill(t *testing.T) {
	t.Parallel()
	kills, between := 2, int64(400)
	if tally.Long() {
		kills, between = 10, 2_000
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	m := &mixed{
		world:    &world{t: t, dir: t.TempDir()},
		produced: map[string]bool{}, acked: map[string]bool{}, schemas: map[string]int32{},
		created: map[string]string{},
	}
	m.start(ctx, testserver.Options{})
	defer func() { m.server.Load().Kill() }()
	for i := range mixedTopics {
		for _, subscription := range []string{"worker", "all"} {
			path := "/admin/v2/persistent/public/default/" + mixedTopic(i) + "/subscription/" + subscription
			m.must(ctx, http.MethodPut, path, nil)
		}
	}
	loading, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	for worker := range 8 {
		kinds := []func(ctx context.Context, worker, i int) bool{m.produce, m.settle, m.register, m.create}
		for _, kind := range kinds {
			load.Go(func() {
				for i := 0; loading.Err() == nil; i++ {
					if !kind(ctx, worker, i) {
						pause(loading)
					}
				}
			})
		}
	}
	var recovery time.Duration
	for range kills {
		for goal := m.done.Load() + between; m.done.Load() < goal && ctx.Err() == nil; {
			pause(ctx)
		}
		old := m.server.Load()
		old.Kill()
		killed := time.Now()
		m.start(ctx, testserver.Options{DataDir: old.DataDir})
		recovery = max(recovery, time.Since(killed))
	}
	stop()
	load.Wait()
	old := m.server.Load()
	old.Kill() // once more, so that the check reads from disk
	m.start(ctx, testserver.Options{DataDir: old.DataDir})
	lost, checked := m.lost(ctx)
	tally.Fault{
		Name: "kill -9 under produces, acks, schemas and creates", Injected: kills + 1, Checked: checked,
		Lost: lost, Foreign: int(m.foreign.Load()), Wrong: int(m.wrong.Load()), Recovery: recovery,
	}.Record(t)
	t.Logf("acknowledged: %d produces, %d acks, %d schemas, %d creates", len(m.produced), len(m.acked), len(m.schemas),
		len(m.created))
}

func (m *mixed) start(ctx context.Context, opts testserver.Options) {
	m.t.Helper()
	var err error
	if m.binary == "" {
		if m.binary, err = testserver.Binary(ctx, m.dir); err != nil {
			m.t.Fatal(err)
		}
	}
	server, err := testserver.Start(ctx, m.binary, m.dir, opts)
	if err != nil {
		m.t.Fatal(err)
	}
	m.server.Store(server)
}

// attempt makes a call. It returns status 0 for connection errors and server errors, and
// counts any status other than the expected ones as wrong.
func (m *mixed) attempt(ctx context.Context, method, path, body, kind string, right ...int) (int, []byte, http.Header) {
	status, response, header, err := m.call(ctx, method, path, []byte(body), "Content-Type", kind)
	if err != nil || status >= 500 || status == http.StatusTooManyRequests {
		return 0, nil, nil
	}
	for _, s := range right {
		if s == status {
			return status, response, header
		}
	}
	m.wrong.Add(1)
	m.t.Logf("%s %s: got %d %.300s, want %v or a server error", method, path, status, response, right)
	return 0, nil, nil
}

// record records an acknowledged operation.
func record[V any](m *mixed, in map[string]V, key string, value V) bool {
	m.mu.Lock()
	in[key] = value
	m.mu.Unlock()
	m.done.Add(1)
	return true
}

// name returns a different name for each worker and call.
func name(worker, i int) string { return fmt.Sprintf("w%d-%d", worker, i) }

// produce sends a message that names its topic. Some messages have 8 KiB.
func (m *mixed) produce(ctx context.Context, worker, i int) bool {
	topic, size := mixedTopic(worker+i), 100
	if i%20 == 0 {
		size = 8 << 10
	}
	payload := string(stamp.Make(topic, fmt.Sprint("w", worker), i, size))
	status, _, _ := m.attempt(ctx, http.MethodPost, mixedPath(topic)+"/message", payload, asBytes, http.StatusCreated)
	return status != 0 && record(m, m.produced, payload, true)
}

// settle consumes a message and acknowledges it.
func (m *mixed) settle(ctx context.Context, worker, i int) bool {
	topic := mixedTopic(worker + i)
	status, payload, header := m.attempt(ctx, http.MethodPost, mixedPath(topic)+"/worker/message",
		`{"timeoutMillis":100,"ackTimeoutMillis":1000}`, asJSON, http.StatusOK, http.StatusNoContent)
	if status != http.StatusOK {
		return false
	}
	m.inspect(payload, topic)
	id := header.Get("X-Msg-Message-Id")
	status, _, _ = m.attempt(ctx, http.MethodPut, mixedPath(topic)+"/worker/message", id, asJSON, http.StatusNoContent)
	return status != 0 && record(m, m.acked, string(payload), true)
}

// inspect counts a message that is damaged or belongs to another topic.
func (m *mixed) inspect(payload []byte, topic string) {
	_, err := stamp.Check(payload, topic, stamp.AnyPartition)
	switch {
	case errors.Is(err, stamp.ErrForeign):
		m.foreign.Add(1)
		m.t.Log(err)
	case err != nil:
		m.wrong.Add(1)
		m.t.Log(err)
	}
}

func (m *mixed) register(ctx context.Context, worker, i int) bool {
	name := name(worker, i)
	text := fmt.Sprintf(`{"type":"enum","name":"E","symbols":["S%x"]}`, name)
	body, err := json.Marshal(map[string]string{"schema": text})
	if err != nil {
		m.t.Error(err)
		return false
	}
	status, response, _ := m.attempt(ctx, http.MethodPost, "/subjects/"+name+"/versions", string(body), asJSON,
		http.StatusOK)
	var created struct {
		ID int32 `json:"id"`
	}
	return status != 0 && json.Unmarshal(response, &created) == nil && record(m, m.schemas, text, created.ID)
}

func (m *mixed) create(ctx context.Context, worker, i int) bool {
	name := name(worker, i)
	body := fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":%q}}`,
		name)
	// 409 means that an earlier attempt without a response had succeeded.
	status, response, _ := m.attempt(ctx, http.MethodPost, accounts, body, asJSON, http.StatusCreated,
		http.StatusConflict)
	var created struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	return status == http.StatusCreated && json.Unmarshal(response, &created) == nil &&
		record(m, m.created, name, created.Metadata.UID)
}

// lost checks everything that was acknowledged, and returns the number of missing and of
// checked operations.
func (m *mixed) lost(ctx context.Context) (missing, checked int) {
	found, again := m.remaining(ctx, "all"), m.remaining(ctx, "worker")
	for payload := range m.produced {
		if !found[payload] {
			missing++
			m.t.Logf("message %.60q was acknowledged and is lost", payload)
		}
	}
	for payload := range m.acked {
		if again[payload] {
			missing++
			m.t.Logf("acknowledgement of message %.60q is lost", payload)
		}
	}
	ids := map[int32]string{}
	for text, id := range m.schemas {
		if other, twice := ids[id]; twice {
			m.wrong.Add(1)
			m.t.Logf("id %d was assigned to %s and to %s", id, other, text)
		}
		ids[id] = text
		_, response, _ := m.attempt(ctx, http.MethodGet, fmt.Sprintf("/schemas/ids/%d", id), "", asJSON, http.StatusOK)
		var got struct {
			Schema string `json:"schema"`
		}
		if json.Unmarshal(response, &got) != nil || got.Schema != text {
			missing++
			m.t.Logf("schema %d: got %[3]s, want %[2]s", id, text, response)
		}
	}
	return missing + m.lostObjects(ctx), len(m.produced) + len(m.acked) + len(m.schemas) + len(m.created)
}

func (m *mixed) lostObjects(ctx context.Context) (missing int) {
	_, response, _ := m.attempt(ctx, http.MethodGet, accounts, "", asJSON, http.StatusOK)
	var list struct {
		Items []struct {
			Metadata struct {
				Name, UID string
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(response, &list); err != nil {
		m.t.Fatalf("listing: %v", err)
	}
	existing := map[string]string{}
	for _, item := range list.Items {
		existing[item.Metadata.Name] = item.Metadata.UID
	}
	for name, uid := range m.created {
		if existing[name] != uid {
			missing++
			m.t.Logf("%s: got uid %[3]q, want %[2]s", name, uid, existing[name])
		}
	}
	return missing
}

// remaining consumes all remaining messages of the subscriptions with a name. It waits longer
// than settle's lease, so that messages whose acknowledgement was lost are redelivered.
func (m *mixed) remaining(ctx context.Context, subscription string) map[string]bool {
	var mu sync.Mutex
	found := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 6 * mixedTopics {
		topic := mixedTopic(i)
		wg.Go(func() {
			for {
				status, payload, _ := m.attempt(ctx, http.MethodPost, mixedPath(topic)+"/"+subscription+"/message",
					`{"timeoutMillis":2500,"ackTimeoutMillis":600000}`, asJSON, http.StatusOK, http.StatusNoContent)
				if status != http.StatusOK {
					return
				}
				m.inspect(payload, topic)
				mu.Lock()
				found[string(payload)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return found
}
