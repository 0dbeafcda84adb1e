// Package resources tests the resource API of the real binary where a real process is
// needed: crashes, locks and signals.
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

// TestCreatedObjectsSurviveACrash kills the server during a thousand concurrent creates.
// After a restart every object whose create got 201 exists, is complete, and becomes ready.
func TestCreatedObjectsSurviveACrash(t *testing.T) {
	t.Parallel()
	const creates, killAfter = 1000, 400
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	var (
		done    atomic.Int64
		created sync.Map // response by name
		wg      sync.WaitGroup
		kill    = make(chan struct{})
	)
	for i := range creates {
		wg.Go(func() {
			name, path, body := anyObject(i)
			for {
				status, response, err := call(t.Context(), server, http.MethodPost, path, body)
				switch {
				case err != nil:
					return // the server was killed
				case status == http.StatusTooManyRequests: // rate limited
					<-time.After(50 * time.Millisecond)
					continue
				case status == http.StatusCreated:
					created.Store(name, response)
					if done.Add(1) == killAfter {
						close(kill)
					}
				default:
					t.Errorf("creating %s: got %d: %s", name, status, response)
				}
				return
			}
		})
	}
	<-kill
	server.Kill()
	wg.Wait()

	again := start(t, dir, testserver.Options{DataDir: server.DataDir})
	found := map[string]object{}
	for _, path := range []string{users, acme + "serviceaccounts"} {
		for _, o := range list(t, again, path) {
			found[o.Metadata.Name] = o
		}
	}
	answered := 0
	created.Range(func(name, response any) bool {
		answered++
		var was object
		if err := json.Unmarshal(response.([]byte), &was); err != nil {
			t.Errorf("create of %s got 201 with %s", name, response)
		}
		now, ok := found[name.(string)]
		if !ok {
			t.Errorf("create of %s got 201, but the object does not exist", name)
		} else if now.Metadata.UID != was.Metadata.UID ||
			now.Metadata.CreationTimestamp != was.Metadata.CreationTimestamp || !bytes.Equal(now.Spec, was.Spec) {
			t.Errorf("%s: got %+[3]v, want %+[2]v", name, was, now)
		}
		return true
	})
	for name, o := range found {
		if o.Metadata.UID == "" || o.Metadata.Generation != 1 || len(o.Metadata.Finalizers) != 1 ||
			o.Metadata.CreationTimestamp == "" {
			t.Errorf("incomplete object: %s %+v", name, o)
		}
	}
	if answered < killAfter || answered == creates {
		t.Errorf("%d creates got 201 before the kill, want some but not all", answered)
	}
	t.Logf("%d creates got 201, %d objects exist after the kill", answered, len(found))

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

// anyObject returns a user or a service account, which is sealed at rest.
func anyObject(i int) (name, path, body string) {
	if i%2 == 0 {
		name = fmt.Sprintf("u%04d", i)
		return name, users, `{"metadata":{"name":"` + name + `"},"spec":{"email":"` + name + `@example.com"}}`
	}
	name = fmt.Sprintf("s%04d", i)
	return name, acme + "serviceaccounts", `{"metadata":{"name":"` + name + `"}}`
}

// TestSecondProcessIsRefused checks that a second server cannot use the same data directory.
func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	_, err := testserver.Start(t.Context(), binary, dir, testserver.Options{DataDir: server.DataDir})
	if err == nil {
		t.Fatal("second server started")
	}
	if want := fmt.Sprintf("in use by another freshet process (pid %d)",
		server.PID()); !strings.Contains(err.Error(), want) {
		t.Errorf("error does not contain %q: %v", want, err)
	}
	must(t, server, http.MethodGet, users, "", http.StatusOK)
	if err := server.Stop(30 * time.Second); err != nil {
		t.Errorf("stopping the first server: %v", err)
	}
}

// TestGracefulStop checks that an open watch and a waiting consumer do not delay the shutdown.
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
	watch, err := http.DefaultClient.Do(req) // returns when the watch is open
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
		t.Errorf("waiting consumer: got %d, want 204", status)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %v, want at most 20 s", took)
	}
}

// awaitWaiting returns when the server reports a waiting consumer.
func awaitWaiting(t *testing.T, server *testserver.Server) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		_, response, err := call(t.Context(), server, http.MethodGet, "/admin/v2/persistent/public/default/t/stats", "")
		if err == nil && bytes.Contains(response, []byte(`"waitingConsumers":1`)) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	_, response, _ := call(t.Context(), server, http.MethodGet, "/admin/v2/persistent/public/default/t/stats", "")
	t.Logf("server reports no waiting consumer: %s", response)
}
