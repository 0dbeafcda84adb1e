package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

const (
	acme  = "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/"
	users = acme + "users"
)

// binary is the path of the server binary that every test starts.
var binary string

func TestMain(m *testing.M) {
	testserver.Main(m, &binary)
}

// start runs a server until the end of the test.
func start(t *testing.T, dir string, opts testserver.Options) *testserver.Server {
	t.Helper()
	server, err := testserver.Start(t.Context(), binary, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

// caller keeps enough idle connections for all concurrent calls.
var caller = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}

func call(ctx context.Context, s *testserver.Server, method, path, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := caller.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	response, err := io.ReadAll(res.Body)
	return res.StatusCode, response, err
}

// must makes a call that must return one of the codes.
func must(t *testing.T, s *testserver.Server, method, path, body string, codes ...int) []byte {
	t.Helper()
	code, response, err := call(t.Context(), s, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	for _, want := range codes {
		if code == want {
			return response
		}
	}
	t.Fatalf("%s %s: got %d, want %v: %s", method, path, code, codes, response)
	return nil
}

// object holds the fields of any kind that these tests check.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace, UID, ResourceVersion string
		Generation                            int
		CreationTimestamp                     string
		Finalizers                            []string
	}
	Spec   json.RawMessage
	Status struct {
		Conditions     []struct{ Type, Status, Reason string }
		PrivateKeyData string
	}
}

// ready reports whether the object's reconciler is done. Users are not Ready before they can
// sign in; their reconciler is done when the condition Active exists.
func (o object) ready() bool {
	for _, c := range o.Status.Conditions {
		if (c.Type == "Ready" && c.Status == "True") || c.Type == "Active" {
			return true
		}
	}
	return false
}

// list reads a collection page by page.
func list(t *testing.T, s *testserver.Server, path string) []object {
	t.Helper()
	var all []object
	for token := ""; ; {
		var page struct {
			Metadata struct{ Continue string }
			Items    []object
		}
		response := must(t, s, http.MethodGet, path+"?limit=300&continue="+token, "", http.StatusOK)
		if err := json.NewDecoder(bytes.NewReader(response)).Decode(&page); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if token = page.Metadata.Continue; token == "" {
			return all
		}
	}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(90 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout: %s", what)
		}
	}
}
