// Package resources drives the resource API of the real binary where only a
// real process will do: crashes, locks and signals.
package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/test/testserver"
)

const users = "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/users"

func start(t *testing.T, dir string, opts testserver.Options) *testserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(ctx, binary, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

func call(ctx context.Context, s *testserver.Server, method, path, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// TestNothingThatWasCreatedIsLost: a thousand creates at once, a kill -9 in the
// middle, and every one that was answered 201 is there after a restart.
func TestNothingThatWasCreatedIsLost(t *testing.T) {
	t.Parallel()
	const creates, callers, killAfter = 1000, 64, 400
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	var (
		next, done atomic.Int64
		created    sync.Map
		group      sync.WaitGroup
		killed     = make(chan struct{})
	)
	for range callers {
		group.Go(func() {
			for i := next.Add(1); i <= creates; i = next.Add(1) {
				name := fmt.Sprintf("u%04d", i)
				body := `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User","metadata":{"name":"` + name + `"},"spec":{"email":"` + name + `@example.com"}}`
				status, _, err := call(t.Context(), server, http.MethodPost, users, body)
				if err != nil {
					return // the server is gone
				}
				if status == http.StatusCreated {
					created.Store(name, true)
				}
				if done.Add(1) == killAfter {
					close(killed)
				}
			}
		})
	}
	<-killed
	server.Kill()
	group.Wait()

	again := start(t, dir, testserver.Options{DataDir: server.DataDir})
	status, answer, err := call(t.Context(), again, http.MethodGet, users, "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("list: %d %v", status, err)
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID string }
			Spec     struct{ Email string }
		}
	}
	if err := json.NewDecoder(bytes.NewReader(answer)).Decode(&list); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, item := range list.Items {
		found[item.Metadata.Name] = true
		if item.Metadata.UID == "" || item.Spec.Email != item.Metadata.Name+"@example.com" {
			t.Errorf("half an object: %+v", item)
		}
	}
	answered := 0
	created.Range(func(name, _ any) bool {
		answered++
		if !found[name.(string)] {
			t.Errorf("%s was answered 201 and is gone", name)
		}
		return true
	})
	if answered < killAfter/2 {
		t.Errorf("only %d creates were answered before the kill", answered)
	}
	t.Logf("%d answered 201, %d found after the kill", answered, len(found))
}

// TestSecondProcessIsRefused: two servers on one data directory would be two
// truths.
func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	binary, err := testserver.Binary(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = testserver.Start(t.Context(), binary, dir, testserver.Options{DataDir: server.DataDir})
	if err == nil {
		t.Fatal("a second server started")
	}
	if !strings.Contains(err.Error(), "in use by another freshet process") {
		t.Errorf("the refusal does not tell why: %v", err)
	}
	if err := server.Stop(30 * time.Second); err != nil {
		t.Errorf("the first server after that: %v", err)
	}
}

// TestGracefulStop: an open watch and a waiting consumer do not hold the end up.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), testserver.Options{})
	status, _, err := call(t.Context(), server, http.MethodPut, "/admin/v2/persistent/public/default/t/subscription/s", "")
	if err != nil || status != http.StatusNoContent {
		t.Fatalf("subscription: %d %v", status, err)
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
		status, _, _ := call(t.Context(), server, http.MethodPost, "/admin/rest/topics/v1/public/default/t/s/message", `{"timeoutMillis":30000}`)
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
