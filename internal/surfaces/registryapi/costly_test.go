package registryapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"freshet/internal/registry/schemas"
	"freshet/test/tally"
)

// unionOf returns a JSON Schema with n branches, whose property names begin with name.
func unionOf(n int, name string) string {
	var b strings.Builder
	b.WriteString(`{"oneOf":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"object","properties":{"%s%d":{"type":"string"}}}`, name, i)
	}
	b.WriteString(`]}`)
	return b.String()
}

func draft(t testing.TB, kind, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"schemaType": kind, "schema": text})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// send makes a request and returns the status and the body; the status is 0 if the
// request failed or was canceled.
func send(ctx context.Context, method, url, token, body string) (int, string) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer w.Body.Close()
	response, err := io.ReadAll(w.Body)
	if err != nil {
		return 0, err.Error()
	}
	return w.StatusCode, string(response)
}

// TestAttackCostlyChecks: 48 concurrent checks of the maximum cost by one principal do
// not delay calls of another principal. The test does not measure time but counts how
// many costly checks finish during one small call: only those that were already running,
// not those in the queue.
func TestAttackCostlyChecks(t *testing.T) {
	const attackers, before = 48, 900
	s := newServer(t, schemas.Options{})
	if status, response := send(t.Context(), "POST", s.URL+"/subjects/costly/versions", "admin",
		draft(t, "JSON", unionOf(before, "a"))); status != 200 {
		t.Fatalf("got %d %s, want 200", status, response)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var checks, refusals atomic.Int64
	var group sync.WaitGroup
	started := make(chan struct{}, attackers)
	for i := range attackers {
		body := draft(t, "JSON", unionOf(before, fmt.Sprintf("b%d_", i)))
		group.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				if first {
					started <- struct{}{}
				}
				switch status, _ := send(ctx, "POST", s.URL+"/compatibility/subjects/costly/versions/latest", "admin",
					body); status {
				case 0:
				case 503:
					refusals.Add(1)
				default:
					checks.Add(1)
				}
			}
		})
	}
	for range attackers {
		<-started
	}
	const calls = 20
	victims := 0
	call := func(method, path, body string) {
		served := checks.Load()
		status, response := send(t.Context(), method, s.URL+path, "writer", body)
		if waited := checks.Load() - served; status != 200 || waited > attackers/4 {
			t.Errorf("%s %s: got %d %.200s after %d costly checks, want 200 after at most %d", method, path, status,
				response, waited, attackers/4)
			victims++
		}
	}
	for i := range calls {
		subject := fmt.Sprintf("/subjects/team.one.small-%d-value/versions", i)
		call("POST", subject, draft(t, "AVRO", fmt.Sprintf(`{"type":"record","name":"R%d","fields":[]}`, i)))
		call("GET", subject+"/latest", "")
	}
	cancel()
	group.Wait()
	t.Logf("%d costly checks were done and %d rejected immediately", checks.Load(), refusals.Load())
	tally.Attack(t, "costly checks in the registry against small calls", 2*calls, victims)
}

// TestCostlyCheckIsRefused: a check whose cost would exceed the limit is rejected before
// it starts, with an error of the registry.
func TestCostlyCheckIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, schemas.Options{})
	if status, response := send(t.Context(), "POST", s.URL+"/subjects/s/versions", "admin",
		draft(t, "JSON", unionOf(5_000, "a"))); status != 200 {
		t.Fatalf("got %d %s, want 200", status, response)
	}
	other := draft(t, "JSON", unionOf(5_000, "b"))
	for _, path := range []string{
		"/subjects/s/versions", "/compatibility/subjects/s/versions",
		"/compatibility/subjects/s/versions/latest",
	} {
		status, response := send(t.Context(), "POST", s.URL+path, "admin", other)
		if status != 422 || !strings.Contains(response, `"error_code":42201`) ||
			!strings.Contains(response, "more than 10000000 steps") {
			t.Errorf("%s: got %d %.300s, want 422 with code 42201 and the limit", path, status, response)
		}
	}
}
