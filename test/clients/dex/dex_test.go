package dex

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"

	"freshet/test/poll"
	"freshet/test/testserver"
)

// email is the address of the user that Dex's mock connector always signs in.
const email = "kilgore@kilgore.trout"

// provider starts Dex in this process; clients can be added to its storage.
func provider(t *testing.T) (issuer string, clients storage.Storage) {
	t.Helper()
	var server http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sign, err := signer.NewMockSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	store := memory.New(log)
	if err := store.CreateConnector(t.Context(),
		storage.Connector{ID: "mock", Type: "mockCallback", Name: "Mock", Config: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	server, err = dex.NewServer(t.Context(), dex.Config{
		Issuer: s.URL, Storage: store, Web: dex.WebConfig{WebFS: webFiles(t)}, Logger: log,
		PrometheusRegistry: prometheus.NewRegistry(), HealthChecker: gosundheit.New(),
		SkipApprovalScreen: true, Signer: sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, store
}

// webFiles returns Dex's pages from the folder of its module.
func webFiles(t *testing.T) fs.FS {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/dexidp/dex").Output()
	if err != nil {
		t.Fatal(err)
	}
	return os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "web"))
}

// start runs Freshet with the provider configured.
func start(t *testing.T, issuer string) *testserver.Server {
	t.Helper()
	dir := t.TempDir()
	binary := os.Getenv("FRESHET_BIN")
	if binary == "" {
		binary = filepath.Join(dir, "freshet")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/freshet")
		build.Dir = filepath.Join("..", "..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building freshet: %v\n%s", err, out)
		}
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("shared\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "freshet.yaml")
	text := fmt.Sprintf("signIn:\n  openID:\n    issuer: %s\n    clientID: freshet\n    clientSecretFile: %s\n    "+
		"name: Dex\n    domains: [kilgore.trout]\n", issuer, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(context.WithoutCancel(t.Context()), binary, dir,
		testserver.Options{Args: []string{"--config", file}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

// call makes a request to the resource API as the operator.
func call(t *testing.T, s *testserver.Server, method, path string, body any) (status int, response map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/apis/cloud.vendor.io/v1alpha1/namespaces/"+path,
		bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&response); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, response
}

// page is the final response of a browser.
type page struct {
	status int
	at     *url.URL
	body   string
}

func browse(t *testing.T, client *http.Client, method, address string, form url.Values) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{res.StatusCode, res.Request.URL, string(body)}
}

// TestDexSignIn signs users in through Dex: an address without a user is rejected, a user
// is signed in, and a user of two organizations is signed in after choosing one.
func TestDexSignIn(t *testing.T) {
	issuer, clients := provider(t)
	s := start(t, issuer)
	err := clients.CreateClient(t.Context(),
		storage.Client{
			ID: "freshet", Secret: "shared", RedirectURIs: []string{s.URL + "/oauth/callback"},
			Name: "Freshet",
		})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() (*http.Client, page) {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Jar: jar}
		return client, browse(t, client, http.MethodGet, s.URL+"/oauth/signin/openid?next=/oauth/account", nil)
	}
	if _, p := begin(); p.status != http.StatusForbidden || !strings.Contains(p.body, "no user of this server") &&
		!strings.Contains(p.body, "No user of this server") {
		t.Fatalf("address without a user: got %d at %s: %s, want 403", p.status, p.at, p.body)
	}
	user := func(organization string) {
		status, response := call(t, s, http.MethodPost, organization+"/users", map[string]any{
			"metadata": map[string]any{"name": "kilgore"},
			"spec":     map[string]any{"email": strings.ToUpper(email[:1]) + email[1:]},
		})
		if status != http.StatusCreated {
			t.Fatalf("creating the user: got %d %v, want 201", status, response)
		}
		poll.Until(t, time.Minute, "a user that can sign in without an invitation", func() bool {
			_, response := call(t, s, http.MethodGet, organization+"/users/kilgore", nil)
			return strings.Contains(fmt.Sprint(response["status"]), "CanSignIn")
		})
	}
	user("acme")
	if _, p := begin(); p.status != 200 || p.at.Path != "/oauth/account" || !strings.Contains(p.body, "acme") {
		t.Fatalf("one organization: got %d at %s: %s, want the user signed in", p.status, p.at, p.body)
	}
	user("beta")
	client, p := begin()
	if p.status != 200 || !strings.Contains(p.body, "several organizations") {
		t.Fatalf("two organizations: got %d at %s: %s, want a choice", p.status, p.at, p.body)
	}
	field := func(name string) string {
		all := regexp.MustCompile(`name="`+name+`" value="([^"]*)"`).FindAllStringSubmatch(p.body, -1)
		if len(all) == 0 {
			t.Fatalf("page has no field %s: %s", name, p.body)
		}
		return html.UnescapeString(all[len(all)-1][1]) // the second organization's
	}
	p = browse(t, client, http.MethodPost, s.URL+"/oauth/choose",
		url.Values{"proof": {field("proof")}, "token": {field("token")}, "uid": {field("uid")}})
	if p.status != 200 || p.at.Path != "/oauth/account" || !strings.Contains(p.body, "beta") {
		t.Fatalf("choosing beta: got %d at %s: %s, want the user signed in there", p.status, p.at, p.body)
	}
	// The callback URL of another browser's sign-in is rejected.
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stolen := ""
	victim := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/oauth/callback" {
			stolen = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	browse(t, victim, http.MethodGet, s.URL+"/oauth/signin/openid", nil)
	if stolen == "" {
		t.Fatal("provider did not redirect the browser back")
	}
	if p := browse(t, &http.Client{}, http.MethodGet, stolen, nil); p.status != http.StatusUnauthorized {
		t.Errorf("code of another browser: got %d, want 401", p.status)
	}
}
