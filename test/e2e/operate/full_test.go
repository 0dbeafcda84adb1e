package operate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"freshet/test/pages"
	"freshet/test/poll"
	"freshet/test/tally"
	"freshet/test/testserver"
)

// TestFaultFullQuota fills the resource store of the real binary, restarts the server, and
// then recovers with the commands of docs/howto/operate.md.
func TestFaultFullQuota(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	dir := t.TempDir()
	options := testserver.Options{DataDir: dir + "/data", Env: []string{"FRESHET_ETCD_QUOTA=16Mi"}}
	server, err := testserver.Start(t.Context(), program(t), dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Kill() })
	fault := tally.Fault{Name: "etcd quota full, with a restart", Injected: 1, Checked: fillUp(t, server)}

	if err := server.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if server, err = testserver.Start(t.Context(), program(t), dir, options); err != nil {
		t.Fatalf("server does not start with a full store: %v", err)
	}
	problem := ""
	for range 50 { // compaction still frees space for some time
		fault.Checked += fillUp(t, server)
		if problem = degraded(t, server, &fault); problem == "" {
			break
		}
	}
	if problem != "" {
		fault.Wrong++
		t.Errorf("full store: %s", problem)
	}
	if n := countUsers(t, server); n != fault.Checked {
		fault.Lost = fault.Checked - n
	}

	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c",
		pages.Commands(page(t, "howto/operate.md")))
	cmd.Env = append(os.Environ(), "FRESHET_SERVER="+server.URL, "FRESHET_OPS="+server.Ops,
		"FRESHET_DATA="+server.DataDir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := `freshet_resource_bytes{organization="acme"}`; !strings.Contains(string(out), want) {
		t.Errorf("output does not contain %q:\n%s", want, out)
	}
	fault.Recovery = time.Since(began)
	// The controllers first write the conditions that they could not write to the full store.
	poll.Until(t, time.Minute, "creating after the recovery: 201", func() bool {
		return makeUser(t, server, "afterwards", 300<<10) == http.StatusCreated
	})
	fault.Record(t)
}

// degraded checks a full store: a user of 250 KiB is rejected with 503, /readyz is 200 and
// reports that the store is nearly full, and the metric freshet_etcd_refusing is 1. It returns
// "" if all three are true, and otherwise the first difference.
func degraded(t *testing.T, server *testserver.Server, fault *tally.Fault) string {
	t.Helper()
	if code := makeUser(t, server, fmt.Sprintf("more-%d", time.Now().UnixNano()),
		250<<10); code != http.StatusServiceUnavailable {
		if code == http.StatusCreated {
			fault.Checked++
		}
		return fmt.Sprintf("creating a user: got %d, want 503", code)
	}
	for _, page := range []struct{ path, want string }{
		{"/readyz", "ok\ndegraded: resource store is nearly full"}, {"/metrics", "\nfreshet_etcd_refusing 1\n"},
	} {
		code, text := ops(t, server, page.path)
		if code != http.StatusOK || !strings.Contains(text, page.want) {
			return fmt.Sprintf("%s: got %d without %q, want 200 with it", page.path, code, page.want)
		}
	}
	return ""
}

// ops requests a page of the ops listener.
func ops(t *testing.T, server *testserver.Server, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Ops+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// fillUp creates users until the store rejects small ones many times in sequence.
func fillUp(t *testing.T, server *testserver.Server) (made int) {
	t.Helper()
	const sure = 100 // compaction may still free space
	size := 200 << 10
	for refused := 0; refused < sure; {
		switch code := makeUser(t, server, fmt.Sprintf("u-%d", time.Now().UnixNano()), size); code {
		case http.StatusCreated:
			made, refused = made+1, 0
		case http.StatusServiceUnavailable:
			refused++
			size = max(size/2, 16<<10)
		default:
			t.Fatalf("creating a user: got %d, want 201 or 503", code)
		}
	}
	return made
}

func makeUser(t *testing.T, server *testserver.Server, name string, size int) int {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{"made-by": "loop"},
			"annotations": map[string]any{"padding": strings.Repeat("x", min(size, 250<<10))},
		},
		"spec": map[string]any{"email": "u@example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}
	code, _ := request(t, server, http.MethodPost, "users", body)
	return code
}

func countUsers(t *testing.T, server *testserver.Server) int {
	t.Helper()
	_, text := request(t, server, http.MethodGet, "users?limit=1", nil)
	var list struct {
		Metadata struct{ RemainingItemCount int }
		Items    []any
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return len(list.Items) + list.Metadata.RemainingItemCount
}

func request(t *testing.T, server *testserver.Server, method, path string, body []byte) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method,
		server.URL+"/apis/cloud.vendor.io/v1alpha1/namespaces/acme/"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+server.Token)
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text
}
