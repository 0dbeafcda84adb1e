package contexts_test

import (
	"os"
	"path/filepath"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// TestCredentialsGoOnlyToTheirServer checks which servers a credential is sent to.
func TestCredentialsGoOnlyToTheirServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	write(t, filepath.Join(data, "admin.token"), "t")
	write(t, filepath.Join(data, "admin.json"), `{"client_id": "i", "client_secret": "s",
		"client_email": "admin@default.x", "issuer_url": "http://127.0.0.1:8080"}`)
	write(t, filepath.Join(data, "kubeconfig"), "clusters:\n- name: freshet\n  cluster: {server: "+
		"'https://127.0.0.1:8443'}\ncontexts:\n- name: freshet\n  context: {cluster: freshet, namespace: home}\n"+
		"current-context: freshet\n")
	credentials := write(t, filepath.Join(dir, "ci.json"), admin)
	ca, otherCA := write(t, filepath.Join(dir, "ca.crt"), "CA\n"), write(t, filepath.Join(dir, "other.crt"), "other")
	file := write(t, filepath.Join(dir, "contexts.yaml"), `contexts:
- {name: work, server: 'https://w', organization: acme, credential: {tokenFile: /c}, certificateAuthority: CA}
- {name: plain, server: 'http://p:1', organization: acme, credential: {tokenFile: /c}}
- {name: allowed, server: 'http://p:1', organization: acme, credential: {tokenFile: /c}, insecureHTTP: true}
- {name: here, server: 'http://localhost:1', organization: acme, credential: {tokenFile: /c}}
`)
	for name, tc := range map[string]struct {
		selection contexts.Selection
		allowed   bool
	}{
		"local to its HTTPS address": {contexts.Selection{Server: "https://127.0.0.1:8443/"}, true},
		"local to its HTTP address":  {contexts.Selection{Server: "http://127.0.0.1:8080"}, true},
		"local to another port":      {contexts.Selection{Server: "http://127.0.0.1:9"}, false},
		"local to another server":    {contexts.Selection{Server: "http://other.example"}, false},
		"local to another server, with TLS": {
			contexts.Selection{Server: "https://other.example", CAFile: otherCA}, false,
		},
		"context to its address":       {contexts.Selection{Context: "work", Server: "https://W:443/"}, true},
		"context to another server":    {contexts.Selection{Context: "work", Server: "https://w.evil.example"}, false},
		"context without TLS":          {contexts.Selection{Context: "work", Server: "http://w"}, false},
		"context with its authority":   {contexts.Selection{Context: "work", CAFile: ca}, true},
		"context, another authority":   {contexts.Selection{Context: "work", CAFile: otherCA}, false},
		"named credential and server":  {contexts.Selection{Server: "https://x", TokenFile: "/t"}, true},
		"credentials file and server":  {contexts.Selection{Server: "https://x", CredentialsFile: credentials}, true},
		"named credential, plain HTTP": {contexts.Selection{Server: "http://x", TokenFile: "/t"}, false},
		"plain HTTP that is allowed": {
			contexts.Selection{Server: "http://x", TokenFile: "/t", InsecureHTTP: true}, true,
		},
		"plain HTTP on this machine":    {contexts.Selection{Server: "http://[::1]:1", TokenFile: "/t"}, true},
		"plain HTTP of a context":       {contexts.Selection{Context: "plain"}, false},
		"plain HTTP, context allows it": {contexts.Selection{Context: "allowed"}, true},
		"plain HTTP of localhost":       {contexts.Selection{Context: "here"}, true},
		"environment to its server": {
			contexts.Selection{Server: "https://x", TokenFile: "/t", CredentialServer: "https://x"}, true,
		},
		"environment to another server": {
			contexts.Selection{Server: "https://y", TokenFile: "/t", CredentialServer: "https://x"}, false,
		},
	} {
		tc.selection.File, tc.selection.DataDir = file, data
		c, err := contexts.Resolve(tc.selection)
		if tc.allowed && err != nil || !tc.allowed && (errs.KindOf(err) != errs.Denied || hint.Of(err) == "") {
			t.Errorf("%s: got %+v, %v (hint %q); want it allowed: %t", name, c, err, hint.Of(err), tc.allowed)
		}
	}
}

// TestDataDirectoryOfAnotherUser checks that commands do not use a server that another user has
// prepared in the current directory.
func TestDataDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can change the owner of a file")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"dir", "admin.token", "admin.json"} {
		data := "data-of-" + name
		write(t, filepath.Join(data, "admin.token"), "t")
		write(t, filepath.Join(data, "admin.json"), admin)
		foreign := filepath.Join(data, name)
		if name == "dir" {
			foreign = data
		}
		if _, err := contexts.Local(data); err != nil {
			t.Fatalf("%s: %v; want the user's own directory to be used", name, err)
		}
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if c, err := contexts.Local(data); errs.KindOf(err) != errs.Denied || hint.Of(err) == "" {
			t.Errorf("%s: got %+v, %v; want it refused with a hint", name, c, err)
		}
		if _, err := contexts.Local(filepath.Join(dir, data)); err != nil {
			t.Errorf("%s, named by its absolute path: %v", name, err)
		}
	}
}
