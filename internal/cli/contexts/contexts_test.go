package contexts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

const admin = `{"type": "vendor_service_account", "client_id": "i", "client_secret": "s",
	"client_email": "ci@acme.stream.example:8443", "issuer_url": "https://stream.example:8443/"}`

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, empty := filepath.Join(dir, "data"), filepath.Join(dir, "nothing")
	write(t, filepath.Join(data, "admin.token"), "t")
	write(t, filepath.Join(data, "kubeconfig"), "clusters:\n- name: freshet\n  cluster: {server: "+
		"'https://127.0.0.1:8443'}\ncontexts:\n- name: freshet\n  context: {cluster: freshet, namespace: home}\n"+
		"current-context: freshet\n")
	plain := filepath.Join(dir, "plain") // a server without HTTPS writes no kubeconfig
	write(t, filepath.Join(plain, "admin.token"), "t")
	write(t, filepath.Join(plain, "admin.json"), admin)
	credentials := write(t, filepath.Join(dir, "ci.json"), admin)
	file := write(t, filepath.Join(dir, "contexts.yaml"), "current: work\ncontexts:\n- {name: work, server: "+
		"'https://w:1', organization: acme, cluster: east, credential: {file: /c}}\n")
	none := filepath.Join(dir, "none.yaml")
	tests := map[string]struct {
		selection                          contexts.Selection
		name, server, organization, secret string
		cluster                            string
	}{
		"current": {contexts.Selection{File: file, DataDir: data}, "work", "https://w:1", "acme", "/c", "east"},
		"local by name": {
			contexts.Selection{File: file, DataDir: data, Context: "local"},
			"local",
			"https://127.0.0.1:8443", "home", filepath.Join(data, "admin.token"), "default",
		},
		"local by default": {
			contexts.Selection{File: none, DataDir: data},
			"local", "https://127.0.0.1:8443", "home",
			filepath.Join(data, "admin.token"), "default",
		},
		"local, no HTTPS": {
			contexts.Selection{File: none, DataDir: plain},
			"local", "https://stream.example:8443",
			"acme", filepath.Join(plain, "admin.token"), "default",
		},
		"overrides": {contexts.Selection{
			File: file, DataDir: data, Server: "https://w:1/", Organization: "o",
			Cluster: "c",
		}, "work", "https://w:1", "o", "/c", "c"},
		"credentials only": {
			contexts.Selection{File: file, DataDir: empty, CredentialsFile: credentials},
			"",
			"https://stream.example:8443", "acme", credentials, "default",
		},
		"other secret": {
			contexts.Selection{File: file, DataDir: empty, Context: "work", TokenFile: "/t"},
			"work",
			"https://w:1", "acme", "/t", "east",
		},
		"all given": {
			contexts.Selection{File: none, DataDir: empty, Server: "https://x", TokenFile: "/t"},
			"",
			"https://x", "default", "/t", "default",
		},
	}
	for name, tc := range tests {
		c, err := contexts.Resolve(tc.selection)
		if err != nil || c.Name != tc.name || c.Server != tc.server || c.Organization != tc.organization ||
			c.Credential.Path() != tc.secret || c.Cluster != tc.cluster {
			t.Errorf("%s: got %+v, %v; want %+v", name, c, err, tc)
		}
	}
	for name, tc := range map[string]struct {
		selection contexts.Selection
		kind      errs.Kind
	}{
		"nothing at all": {contexts.Selection{File: none, DataDir: empty}, errs.Invalid},
		"unknown name":   {contexts.Selection{File: file, DataDir: data, Context: "other"}, errs.Invalid},
		"two secrets": {
			contexts.Selection{File: file, CredentialsFile: credentials, TokenFile: "/t"}, errs.Invalid,
		},
		"not a server":      {contexts.Selection{File: file, Server: "ftp://x"}, errs.Invalid},
		"a secret in a URL": {contexts.Selection{File: file, Server: "https://me:secret@x"}, errs.Invalid},
		"not credentials":   {contexts.Selection{File: file, CredentialsFile: file}, errs.Invalid},
		"no such authority": {contexts.Selection{File: file, CAFile: none}, errs.Invalid},
	} {
		if c, err := contexts.Resolve(tc.selection); errs.KindOf(err) != tc.kind {
			t.Errorf("%s: got %+v, %v; want an error that is %s", name, c, err, tc.kind)
		}
	}
	// An attacker can prepare a directory in which a user then runs a command.
	foreign := filepath.Join(dir, "foreign")
	write(t, filepath.Join(foreign, "kubeconfig"),
		"clusters:\n- name: freshet\n  cluster: {server: 'https://evil.example'}\n")
	if err := os.Chmod(write(t, filepath.Join(foreign, "admin.token"), "t"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := contexts.Resolve(contexts.Selection{File: none, DataDir: foreign}); errs.KindOf(err) != errs.Denied {
		t.Errorf("a token that others can read: got %+v, %v; want it refused", c, err)
	}
	if _, err := contexts.Resolve(contexts.Selection{File: none, DataDir: empty}); hint.Of(err) == "" {
		t.Errorf("%v has no hint", err)
	}
}

// TestUpdatesDoNotOverwriteEachOther checks that concurrent updates all take effect, and
// that only the owner can read the file.
func TestUpdatesDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "freshet", "contexts.yaml")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := contexts.Update(path, func(f *contexts.File) error {
				return f.Put(contexts.Context{Name: fmt.Sprintf("c%d", i), Server: "http://x", Organization: "o"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, err := contexts.Load(path)
	if err != nil || len(f.Contexts) != 20 {
		t.Errorf("got %d contexts, %v; want 20", len(f.Contexts), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v; want 0600", info, err)
	}
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]contexts.Context{
		"no name":         {Server: "http://x", Organization: "o"},
		"a path":          {Name: "../x", Server: "http://x", Organization: "o"},
		"local":           {Name: "local", Server: "http://x", Organization: "o"},
		"no server":       {Name: "a", Organization: "o"},
		"no organization": {Name: "a", Server: "http://x"},
	} {
		var f contexts.File
		if err := f.Put(c); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestStrictFile(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(t.TempDir(), "c.yaml"), "contexts:\n- {name: a, sever: http://x}\n")
	if _, err := contexts.Load(path); err == nil {
		t.Error("a misspelt field: got no error")
	}
}

func TestStoreAndRemoveSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := contexts.StoreSecret(dir, "work", []byte("s"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v; want 0600", info, err)
	}
	elsewhere := write(t, filepath.Join(t.TempDir(), "mine"), "s")
	for _, file := range []string{path, elsewhere} {
		if err := contexts.RemoveSecret(dir,
			contexts.Context{Credential: contexts.Credential{TokenFile: file}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the copy still exists")
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error("the user's own file was removed")
	}
	if _, err := contexts.StoreSecret(dir, "../x", nil); err == nil {
		t.Error("a name with a path: got no error")
	}
}
