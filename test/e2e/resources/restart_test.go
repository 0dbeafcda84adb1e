package resources

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

// objects has one object of each kind that users write, in a valid order of creation.
var objects = []struct{ plural, name, body string }{
	{"serviceaccounts", "robot", `{"metadata":{"name":"robot","labels":{"team":"a"}}}`},
	{"users", "ann@example.com", `{"metadata":{"name":"ann@example.com"},"spec":{"email":"ann@example.com"}}`},
	{"messaginginstances", "main", `{"metadata":{"name":"main"}}`},
	{
		"messagingclusters", "orders",
		`{"metadata":{"name":"orders"},"spec":{"instanceName":"main","location":"local",` +
			`"broker":{"resources":{"cpu":"400m","memory":"1.6Gi"}}}}`,
	},
	{
		"rolebindings", "reader",
		`{"metadata":{"name":"reader"},"spec":{"subjects":[{"kind":"ServiceAccount","name":"robot"}],` +
			`"roleRef":{"kind":"ClusterRole","name":"org-readonly"}}}`,
	},
	{
		"serviceaccountbindings", "robot",
		`{"metadata":{"name":"robot"},"spec":{"serviceAccountName":"robot",` +
			`"poolMemberRef":{"namespace":"default","name":"local"}}}`,
	},
}

// TestRestart checks that all objects exist after a graceful shutdown and after a crash.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *testserver.Server){
		"stop": func(t *testing.T, s *testserver.Server) {
			if err := s.Stop(60 * time.Second); err != nil {
				t.Fatal(err)
			}
		},
		"kill": func(_ *testing.T, s *testserver.Server) { s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := start(t, dir, testserver.Options{})
			for _, w := range objects {
				must(t, server, http.MethodPost, acme+w.plural, w.body, http.StatusCreated)
			}
			eventually(t, "everything is ready", func() bool { return allReady(t, server) })
			before := snapshot(t, server)
			end(t, server)

			again := start(t, dir, testserver.Options{DataDir: server.DataDir})
			if again.Token != server.Token {
				t.Error("administrator's token has changed")
			}
			eventually(t, "everything is ready again", func() bool { return allReady(t, again) })
			after := snapshot(t, again)
			for path, was := range before {
				if now := after[path]; !reflect.DeepEqual(was, now) {
					t.Errorf("%s: got\n%+[3]v\nwant\n%+[2]v", path, was, now)
				}
			}
			if len(after) != len(before) {
				t.Errorf("got %d objects, want %d", len(after), len(before))
			}
			// New objects can be created.
			response := string(must(t, again, http.MethodPost, users,
				`{"metadata":{"name":"new"},"spec":{"email":"new@example.com"}}`, http.StatusCreated))
			if !strings.Contains(response, `"uid":`) {
				t.Errorf("new object: got %s, want %s", response, `"uid":`)
			}
		})
	}
}

func allReady(t *testing.T, s *testserver.Server) bool {
	t.Helper()
	for _, w := range objects {
		for _, o := range list(t, s, acme+w.plural) {
			if !o.ready() {
				return false
			}
		}
	}
	return true
}

// credentials returns the credentials of a service account without the server's address,
// which may change.
func credentials(t *testing.T, data string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	return stripAddress(string(text))
}

// snapshot returns all objects without their resource versions, because a start may write conditions.
func snapshot(t *testing.T, s *testserver.Server) map[string]object {
	t.Helper()
	all := map[string]object{}
	const group = "/apis/cloud.vendor.io/v1alpha1/"
	for _, plural := range []string{
		"serviceaccounts", "users", "messaginginstances", "messagingclusters", "rolebindings", "serviceaccountbindings",
		"apikeys", "pools", "poolmembers", "clusterroles",
	} {
		for _, o := range list(t, s, group+plural) {
			o.Metadata.ResourceVersion = ""
			o.Status.PrivateKeyData = credentials(t, o.Status.PrivateKeyData)
			all[plural+"/"+o.Metadata.Namespace+"/"+o.Metadata.Name] = o
		}
	}
	return all
}

// TestFilesOfTheOwner checks that the operator's files exist after the first start, that other
// users cannot read them, and that a second start does not change them.
func TestFilesOfTheOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir, testserver.Options{})
	read := func() string {
		var all strings.Builder
		for _, name := range []string{"admin.token", "admin.json", "tls/ca.crt", "tls/ca.key", "encryption.key"} {
			path := filepath.Join(server.DataDir, name)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s can be read by other users: %s", name, info.Mode())
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "%s: %s\n", name, text)
		}
		return all.String()
	}
	before := read()
	if err := server.Stop(60 * time.Second); err != nil {
		t.Fatal(err)
	}
	start(t, dir, testserver.Options{DataDir: server.DataDir})
	// The credentials contain the address, which differs at the second start.
	if after := read(); stripAddress(after) != stripAddress(before) {
		t.Error("files have changed after a restart")
	}
}

func stripAddress(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.Contains(line, "issuer_url") || strings.Contains(line, "client_email") {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}
