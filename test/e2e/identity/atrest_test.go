package identity_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/test/testserver"
)

// startOwn starts a server for a single test.
func startOwn(t *testing.T, dataDir string) *testserver.Server {
	t.Helper()
	s, err := testserver.Start(t.Context(), binary, folder,
		testserver.Options{DataDir: dataDir, Args: []string{"--log-level", "debug"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(20 * time.Second) }) // usually stopped already
	registerSecret("the operator's token", s.Token)
	return s
}

func stop(t *testing.T, s *testserver.Server) {
	t.Helper()
	if err := s.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// freshet runs a command that must succeed and returns its output.
func freshet(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("freshet %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// awaitLog waits for a line in the server's log that contains all parts.
func awaitLog(t *testing.T, s *testserver.Server, parts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(logOf(s))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(line, part)
			}
			if found {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("log has no line with %q", parts)
		}
	}
}

// administrator reads the credentials file of the administrator from a data directory.
func administrator(t *testing.T, dataDir string) identity.Credentials {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dataDir, "admin.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.ParseCredentials(data)
	if err != nil {
		t.Fatal(err)
	}
	registerSecret("the administrator's secret", c.ClientSecret.Reveal())
	return c
}

// TestTheAdministratorsFileNamesTodaysAddress checks that, after a start at another address,
// the administrator's file has the same secret and the new address.
func TestTheAdministratorsFileNamesTodaysAddress(t *testing.T) {
	t.Parallel()
	dataDir := t.TempDir()
	s := startOwn(t, dataDir)
	before := administrator(t, dataDir)
	if before.IssuerURL != s.URL {
		t.Errorf("got issuer %s, want %s", before.IssuerURL, s.URL)
	}
	stop(t, s)
	s = startOwn(t, dataDir)
	after := administrator(t, dataDir)
	if after.ClientID != before.ClientID || after.ClientSecret.Reveal() != before.ClientSecret.Reveal() {
		t.Error("credentials changed")
	}
	if after.IssuerURL != s.URL || !strings.HasSuffix(s.URL, strings.TrimPrefix(after.ClientEmail, "admin@default.")) {
		t.Errorf("got issuer %s and principal %s, want %s", after.IssuerURL, after.ClientEmail, s.URL)
	}
	stop(t, s)
}

// TestSecretsAtRest checks one server through a rotation of its encryption key and several
// restarts.
func TestSecretsAtRest(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder, "at-rest")
	s := startOwn(t, dir)
	w := &world{T: t, server: s, org: "acme"}
	robot := w.account("robot", true)
	key := w.plainKey("plain", "robot", "")
	sealedKey := open(t, w.key("sealed", "robot", "").want(201))
	w.post("users", object("ann", map[string]any{"email": "ann@example.org"})).want(201)

	first := strings.TrimSuffix(freshet(t, "admin", "encryption-key", "list", "--data-dir", dir), " (active)")
	second := freshet(t, "admin", "encryption-key", "rotate", "--data-dir", dir)
	awaitLog(t, s, "every secret is sealed", second)
	// The rotation does not affect existing tokens and keys.
	if a, b, c := w.onResources(w.token(robot, s.URL)), w.onResources(key), w.onResources(sealedKey); a != 200 ||
		b != 200 || c != 200 {
		t.Errorf("after the rotation: got %d for the token, %d and %d for the keys; want 200 each", a, b, c)
	}
	freshet(t, "admin", "encryption-key", "retire", first, "--data-dir", dir)
	stop(t, s)
	if err := searchEverything(s, []byte("none")); err != nil {
		t.Error(err)
	}
	checkEtcd(t, dir, second)

	s = startOwn(t, dir)
	w.server = s
	if a, b, c := w.onResources(w.token(robot, s.URL)), w.onResources(key), w.onResources(sealedKey); a != 200 ||
		b != 200 || c != 200 {
		t.Errorf("after the restart without the old key: got %d, %d and %d; want 200 each", a, b, c)
	}
	stop(t, s)
}

// checkEtcd checks the stored values: secrets are sealed with the given key, everything
// else is in plain text.
func checkEtcd(t *testing.T, dir, keyID string) {
	t.Helper()
	member, err := etcd.Start(t.Context(), filepath.Join(dir, "etcd"), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = member.Close() }() // only read
	client, err := member.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // only read
	all, err := client.Get(t.Context(), "/freshet/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := identity.ReadSealer(filepath.Join(dir, "encryption.key"))
	if err != nil {
		t.Fatal(err)
	}
	if ids := sealer.KeyIDs(); len(ids) != 1 || ids[0] != keyID {
		t.Errorf("keys: %v, want 1, %v", ids, keyID)
	}
	count := map[string]int{}
	for _, kv := range all.Kvs {
		path := string(kv.Key)
		secret := strings.Contains(path, "/serviceaccounts/") || strings.Contains(path, "/apikeys/") ||
			strings.HasSuffix(path, "/signing-keys") ||
			strings.HasPrefix(path, "/freshet/signin/")
		sealed := identity.Sealed(kv.Value)
		switch {
		case strings.HasSuffix(path, "/format"): // a format number
		case secret && !sealed:
			t.Errorf("%s is stored in plain text", path)
		case !secret && (sealed || !bytes.HasPrefix(kv.Value, []byte("k8s\x00"))):
			t.Errorf("%s is not stored as a resource: %.20q", path, kv.Value)
		case secret && sealer.Stale(kv.Value):
			t.Errorf("%s is sealed with a retired key", path)
		}
		if sealed {
			count["sealed"]++
			continue
		}
		count["clear"]++
	}
	// Sealed: admin, robot, two keys, the signing keys and the link of the first start.
	// Plain: ann, pools and roles.
	if count["sealed"] != 6 || count["clear"] < 20 {
		t.Errorf("got %v, want 6 sealed and at least 20 plain values", count)
	}
}

// TestRestart checks that all data survives a restart, and that the first start is not repeated.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder, "restarted")
	s := startOwn(t, dir)
	w := &world{T: t, server: s, org: "acme"}
	home := &world{T: t, server: s, org: "default"}
	w.account("robot", true)
	key := w.plainKey("k", "robot", "")
	w.plainKey("dead", "robot", "")
	w.patch("apikeys/dead", map[string]any{"spec": map[string]any{"revoke": true}}).want(200)
	w.instance("prod")
	host := w.cluster("east", "prod")
	w.do(call{method: "PUT", path: "/admin/v2/persistent/public/default/hello/subscription/s", host: host}).want(204)
	w.do(call{
		method: "POST", path: "/admin/rest/topics/v1/public/default/hello/message", host: host,
		body: "still here", kind: "application/octet-stream",
	}).want(201)
	before := administrator(t, dir)
	for _, path := range []string{"messagingclusters/default", "messaginginstances/default"} {
		home.delete(path).want(200, 202)
		home.eventuallyGone(path)
	}
	stop(t, s)

	s = startOwn(t, dir)
	w.server, home.server = s, s
	if r := w.get("messagingclusters/east"); r.conditions() != allReady {
		t.Errorf("cluster: got %s, want %v", r.conditions(), allReady)
	}
	if got := w.onMessages(key, host); got != 201 {
		t.Errorf("key: got %d, want 201", got)
	}
	r := w.do(call{method: "POST", path: "/admin/rest/topics/v1/public/default/hello/s/message", host: host}).want(200)
	if string(r.body) != "still here" {
		t.Errorf("message: got %q, want still here", r.body)
	}
	if got := home.do(call{path: "serviceaccounts", secret: true}).items(); got != "admin" {
		t.Errorf("accounts in default: %q, want admin", got)
	}
	home.get("messaginginstances/default").want(404)
	if after := administrator(t, dir); after.ClientID != before.ClientID ||
		after.ClientSecret.Reveal() != before.ClientSecret.Reveal() {
		t.Error("administrator's credentials changed")
	}
	if info, err := os.Stat(filepath.Join(dir, "admin.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of admin.json: %v %v, want 0600", info, err)
	}
	resetCredentials(t, home, dir)
	stop(t, s)
}

// resetCredentials checks how an operator recovers from lost credentials.
func resetCredentials(t *testing.T, home *world, dir string) {
	t.Helper()
	read := func() credentials {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "admin.json"))
		if err != nil {
			t.Fatal(err)
		}
		var c credentials
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		registerSecret("the administrator's client secret", c.ClientSecret)
		return c
	}
	lost := read()
	token := home.token(lost, home.server.URL)
	freshet(t, "admin", "reset-credentials", "--data-dir", dir)
	if got := home.onResources(token); got != 401 {
		t.Errorf("token of the lost credentials: got %d, want 401", got)
	}
	found := read()
	if found.ClientID == lost.ClientID || found.ClientSecret == lost.ClientSecret {
		t.Error("credentials did not change")
	}
	if got := home.onResources(home.token(found, home.server.URL)); got != 200 {
		t.Errorf("token of the new credentials: got %d, want 200", got)
	}
	// The command also restores an administrator whose account was deleted.
	home.delete("serviceaccounts/admin").want(200, 202)
	home.eventuallyGone("serviceaccounts/admin")
	freshet(t, "admin", "reset-credentials", "--data-dir", dir)
	r := home.do(call{path: api + "/users", as: home.token(read(), home.server.URL)})
	if r.status != 200 {
		t.Errorf("restored administrator, reading across organizations: got %d %s, want 200", r.status, r.body)
	}
}
