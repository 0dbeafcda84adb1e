package operate_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/tally"
)

// TestAttackWithdrawnSigningKey checks that tokens of a withdrawn signing key are rejected
// immediately if the server runs, and from its first response if it was stopped; tokens of
// the next key work.
func TestAttackWithdrawnSigningKey(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	base := "http://127.0.0.1:" + port
	serve := func() *process {
		p := start(t, nil, "serve", "--data-dir", dir, "--http", "127.0.0.1:"+port, "--https", "off", "--ops", "off")
		p.await(base + "/readyz")
		return p
	}
	key := func(code int, args ...string) string {
		t.Helper()
		out, got := run(t, nil,
			append([]string{"admin", "signing-key", "--data-dir", dir, "--server", base}, args...)...)
		if got != code {
			t.Fatalf("signing-key %v: exit code %d, want %d\n%s", args, got, code, out)
		}
		return out
	}
	active := func() string { id, _, _ := strings.Cut(key(0, "list"), " "); return id }
	attempts, successes := 0, 0
	refused := func(what, token string) {
		t.Helper()
		if attempts++; callWith(t, base, token) != http.StatusUnauthorized {
			successes++
			t.Errorf("%s: token works", what)
		}
	}
	p := serve()
	token := signIn(t, dir, base)
	if got := callWith(t, base, token); got != http.StatusOK {
		t.Fatalf("new token: got %d, want 200", got)
	}
	apiKey := func(args ...string) string {
		t.Helper()
		out, code := run(t, []string{"FRESHET_DATA_DIR=" + dir, "HOME=" + dir}, append([]string{"apikey"}, args...)...)
		if code != 0 {
			t.Fatalf("apikey %v: exit code %d\n%s", args, code, out)
		}
		return strings.TrimSpace(out)
	}
	long := filepath.Join(t.TempDir(), "token")
	apiKey("create", "long", "--account", "admin", "--out", long)
	held, err := os.ReadFile(long)
	if err != nil {
		t.Fatal(err)
	}
	first := active()
	key(0, "withdraw", first)
	refused("withdrawn", token)
	refused("an API key that it signed", strings.TrimSpace(string(held)))
	if list := key(0, "list"); strings.Contains(list, first) || len(strings.Fields(list)) != 4 {
		t.Errorf("got keys %q, want two others than %s", list, first)
	}
	if out := key(3, "withdraw", "nosuchkey"); !strings.Contains(out, "list") {
		t.Errorf("unknown key: got %q, want the next step", out)
	}
	second := signIn(t, dir, base)
	if got := callWith(t, base, second); got != http.StatusOK {
		t.Errorf("token of the next key: got %d, want 200", got)
	}
	p.stop()

	key(0, "withdraw", "all")
	p = serve()
	refused("withdrawn before the stop", token)
	refused("withdrawn while stopped", second)
	if got := callWith(t, base, signIn(t, dir, base)); got != http.StatusOK {
		t.Errorf("token of the third key: got %d, want 200", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "signing-keys.withdraw")); !os.IsNotExist(err) {
		t.Errorf("list of withdrawn keys still exists: %v", err)
	}
	p.stop()
	tally.Attack(t, "use a token of a withdrawn signing key", attempts, successes)
}

// signIn requests an access token of the administrator.
func signIn(t *testing.T, dir, base string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "admin.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]string
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	response, err := http.PostForm(base+"/oauth/token", url.Values{
		"grant_type": {"client_credentials"}, "client_id": {file["client_id"]},
		"client_secret": {file["client_secret"]},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var content struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&content); err != nil || content.Token == "" {
		t.Fatalf("requesting a token: %s, %v", response.Status, err)
	}
	return content.Token
}

// callWith returns the status of a read of the resource API.
func callWith(t *testing.T, base, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/namespaces", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // only the status is used
	return response.StatusCode
}
