// Package resources drives the resource API of the real binary where only a
// real process will do: crashes, locks and signals.
package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/test/testserver"
)

// TestNothingThatWasCreatedIsLost: a thousand creates at once, a kill -9 in the
// middle, and every one that was answered 201 is there after a restart, whole,
// and gets what the controllers owe it.
func TestNothingThatWasCreatedIsLost(t *testing.T) {
	t.Parallel()
	const creates, killAfter = 1000, 400
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	var (
		done    atomic.Int64
		created sync.Map // name to answer
		group   sync.WaitGroup
		kill    = make(chan struct{})
	)
	for i := range creates {
		group.Go(func() {
			name, path, body := anyObject(i)
			for {
				status, answer, err := call(t.Context(), server, http.MethodPost, path, body)
				switch {
				case err != nil:
					return // the server is gone
				case status == http.StatusTooManyRequests: // only so many at once
					<-time.After(50 * time.Millisecond)
					continue
				case status == http.StatusCreated:
					created.Store(name, answer)
					if done.Add(1) == killAfter {
						close(kill)
					}
				default:
					t.Errorf("%s is answered %d: %s", name, status, answer)
				}
				return
			}
		})
	}
	<-kill
	server.Kill()
	group.Wait()

	again := start(t, dir, testserver.Options{DataDir: server.DataDir})
	found := map[string]object{}
	for _, path := range []string{users, acme + "serviceaccounts"} {
		for _, o := range list(t, again, path) {
			found[o.Metadata.Name] = o
		}
	}
	answered := 0
	created.Range(func(name, answer any) bool {
		answered++
		var was object
		if err := json.Unmarshal(answer.([]byte), &was); err != nil {
			t.Errorf("%s was answered 201 with %s", name, answer)
		}
		now, ok := found[name.(string)]
		if !ok {
			t.Errorf("%s was answered 201 and is gone", name)
		} else if now.Metadata.UID != was.Metadata.UID ||
			now.Metadata.CreationTimestamp != was.Metadata.CreationTimestamp || !bytes.Equal(now.Spec, was.Spec) {
			t.Errorf("%s was %+v and is %+v", name, was, now)
		}
		return true
	})
	for name, o := range found {
		if o.Metadata.UID == "" || o.Metadata.Generation != 1 || len(o.Metadata.Finalizers) != 1 ||
			o.Metadata.CreationTimestamp == "" {
			t.Errorf("half an object: %s %+v", name, o)
		}
	}
	if answered < killAfter || answered == creates {
		t.Errorf("%d creates were answered before the kill", answered)
	}
	t.Logf("%d answered 201, %d found after the kill", answered, len(found))

	for _, path := range []string{users, acme + "serviceaccounts"} {
		eventually(t, "all of "+path+" are ready", func() bool {
			for _, o := range list(t, again, path) {
				if !o.ready() || (strings.HasSuffix(path, "serviceaccounts") && o.Status.PrivateKeyData == "") {
					return false
				}
			}
			return true
		})
	}
}

// anyObject is a user or, sealed at rest, a service account.
func anyObject(i int) (name, path, body string) {
	if i%2 == 0 {
		name = fmt.Sprintf("u%04d", i)
		return name, users, `{"metadata":{"name":"` + name + `"},"spec":{"email":"` + name + `@example.com"}}`
	}
	name = fmt.Sprintf("s%04d", i)
	return name, acme + "serviceaccounts", `{"metadata":{"name":"` + name + `"}}`
}

// TestSecondProcessIsRefused: two servers on one data directory would be two
// truths.
func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	_, err := testserver.Start(t.Context(), binary, dir, testserver.Options{DataDir: server.DataDir})
	if err == nil {
		t.Fatal("a second server started")
	}
	if want := fmt.Sprintf("in use by another freshet process (pid %d)",
		server.PID()); !strings.Contains(err.Error(), want) {
		t.Errorf("the refusal does not tell %q: %v", want, err)
	}
	must(t, server, http.MethodGet, users, "", http.StatusOK)
	if err := server.Stop(30 * time.Second); err != nil {
		t.Errorf("the first server after that: %v", err)
	}
}

// TestGracefulStop: an open watch and a waiting consumer do not hold the end up.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), testserver.Options{})
	status, _, err := call(t.Context(), server, http.MethodPut,
		"/admin/v2/persistent/public/default/t/subscription/s", "")
	if err != nil || status != http.StatusNoContent {
		t.Fatalf("subscription: %d %v, want %d", status, err, http.StatusNoContent)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+users+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+server.Token)
	watch, err := http.DefaultClient.Do(req) // answered when the watch is open
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	waited := make(chan int, 1)
	go func() {
		status, _, _ := call(t.Context(), server, http.MethodPost, "/admin/rest/topics/v1/public/default/t/s/message",
			`{"timeoutMillis":30000}`)
		waited <- status
	}()
	awaitWaiting(t, server)
	began := time.Now()
	if err := server.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if status := <-waited; status != http.StatusNoContent {
		t.Errorf("the waiting consumer got %d, want 204", status)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %v", took)
	}
}

// awaitWaiting returns once the consumer waits at the server.
func awaitWaiting(t *testing.T, server *testserver.Server) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		_, answer, err := call(t.Context(), server, http.MethodGet, "/admin/v2/persistent/public/default/t/stats", "")
		if err == nil && bytes.Contains(answer, []byte(`"waitingConsumers":1`)) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	_, answer, _ := call(t.Context(), server, http.MethodGet, "/admin/v2/persistent/public/default/t/stats", "")
	t.Logf("no consumer seems to wait: %s", answer)
}
