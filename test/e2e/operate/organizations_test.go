package operate_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

// TestOrganizationAutoCreateOff checks that, with organizations.autoCreate off, a wrong
// name of an organization creates nothing.
func TestOrganizationAutoCreateOff(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(t.Context(), binary, folder,
		testserver.Options{Env: []string{"FRESHET_ORGANIZATIONS_AUTO_CREATE=false"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	call := func(method, path, kind, body string) (status int, text, warning string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+server.Token)
		request.Header.Set("Content-Type", kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(content), response.Header.Get("Warning")
	}
	const (
		json  = "application/json"
		users = "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/users"
		user  = `{"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "User", "metadata": {"name": "ann"}, ` +
			`"spec": {"email": "ann@example.org"}}`
	)
	for name, write := range map[string]func() (int, string, string){
		"create":  func() (int, string, string) { return call("POST", users, json, user) },
		"dry run": func() (int, string, string) { return call("POST", users+"?dryRun=All", json, user) },
		"apply": func() (int, string, string) {
			return call("PATCH", users+"/ann?fieldManager=me", "application/apply-patch+yaml", user)
		},
	} {
		if status, text, _ := write(); status != http.StatusNotFound || !strings.Contains(text, "acme") ||
			!strings.Contains(text, "create namespace") {
			t.Errorf("%s in a missing organization: got %d %s, want 404 and the next step", name, status, text)
		}
	}
	if status, text, _ := call("GET", "/api/v1/namespaces/acme", json, ""); status != http.StatusNotFound {
		t.Errorf("organization exists: %d %s", status, text)
	}
	if status, text, _ := call("POST", "/api/v1/namespaces", json,
		`{"metadata": {"name": "acme"}}`); status != http.StatusCreated {
		t.Fatalf("creating the organization: got %d %s, want 201", status, text)
	}
	if status, text, warning := call("POST", users, json, user); status != http.StatusCreated || warning != "" {
		t.Errorf("first object in it: got %d %s, warning %q, want 201 and none", status, text, warning)
	}
	// The organization default exists from the first start.
	if status, text, _ := call("POST", strings.Replace(users, "acme", "default", 1), json,
		user); status != http.StatusCreated {
		t.Errorf("object in organization default: got %d %s, want 201", status, text)
	}
}
