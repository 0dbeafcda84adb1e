package ensemblecmd_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/cli/command"
	"freshet/internal/cli/ensemblecmd"
	"freshet/internal/ensemble/bundle"
)

// initSecret runs init in the environment of a pod whose API server is handler.
func initSecret(t *testing.T, handler http.HandlerFunc, args ...string) (string, error) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	account := t.TempDir()
	for name, text := range map[string][]byte{
		"token": []byte("the-token\n"), "namespace": []byte("prod"),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	} {
		if err := os.WriteFile(filepath.Join(account, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"KUBERNETES_SERVICE_HOST": address.Hostname(), "KUBERNETES_SERVICE_PORT": address.Port(),
	}
	var out bytes.Buffer
	env := &command.Env{
		Streams: command.Streams{Out: &out, Err: &out}, Getenv: func(name string) string { return environment[name] },
	}
	cmd := ensemblecmd.Commands(env, nil)[0]
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{
		"init", "--base-url", "https://freshet.example.com", "--kubernetes-secret", "freshet-ensemble",
		"--service-account-dir", account, "f-0=f-0.members", "f-1=f-1.members", "f-2=f-2.members",
	}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestInitCreatesASecret(t *testing.T) {
	t.Chdir(t.TempDir())
	var calls int
	var secret struct {
		Kind, Type string
		Metadata   struct{ Name, Namespace string }
		Data       map[string][]byte
	}
	out, err := initSecret(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/prod/secrets" ||
			r.Header.Get("Authorization") != "Bearer the-token" {
			t.Errorf("got %s %s with %v", r.Method, r.URL.Path, r.Header)
		}
		if err := json.NewDecoder(r.Body).Decode(&secret); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(strings.Repeat("the whole secret ", 10_000)))
	})
	if err != nil || calls != 1 || !strings.Contains(out, "secret freshet-ensemble has a bundle") {
		t.Fatalf("got %d calls, %q, %v", calls, out, err)
	}
	if secret.Kind != "Secret" || secret.Type != "Opaque" || secret.Metadata.Name != "freshet-ensemble" ||
		secret.Metadata.Namespace != "prod" || len(secret.Data) != 4 {
		t.Errorf("got %s of type %s, %+v, %d files", secret.Kind, secret.Type, secret.Metadata, len(secret.Data))
	}
	dir := t.TempDir()
	for name, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if g, err := bundle.ReadEnsemble(filepath.Join(dir, bundle.EnsembleFile)); err != nil || len(g.Members) != 3 {
		t.Errorf("group.json: %v", err)
	}
	part, err := bundle.Read(filepath.Join(dir, "f-1.bundle"))
	if err != nil || part.Self != "f-1" || part.Members[2].Log != "f-2.members:7422" {
		t.Errorf("got %+v, %v, want the bundle of f-1", part, err)
	}
	if strings.Contains(out, part.Secrets.AdminToken) {
		t.Error("the output has the administrator's token")
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 0 {
		t.Errorf("got the files %v, %v, want none", files, err)
	}
}

// TestInitSecretResponses checks that only an existing secret is a success, and that failures name what to do.
func TestInitSecretResponses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status     int
		body, want string
		args       []string
		exists     bool
	}{
		"exists": {
			status: http.StatusConflict, body: `{"reason":"AlreadyExists","message":"secrets already exists"}`,
			want: "exists and was not changed", exists: true,
		},
		"another conflict": {
			status: http.StatusConflict, body: `{"reason":"Conflict","message":"resourcequotas was modified"}`,
			want: "resourcequotas was modified",
		},
		"forbidden": {
			status: http.StatusForbidden, body: `{"reason":"Forbidden","message":"user cannot create"}`,
			want: "user cannot create; the service account needs the verb create",
		},
		"not Kubernetes": {status: http.StatusBadGateway, body: "<html>", want: "returned 502"},
		"with --out":     {args: []string{"--out", "x"}, want: "cannot be combined"},
		"name":           {args: []string{"--kubernetes-secret", "../pods"}, want: "takes lowercase letters"},
		"no account":     {args: []string{"--service-account-dir", "none"}, want: "the pod's service account"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := initSecret(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.status == 0 {
					t.Error("the API server was called")
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}, tc.args...)
			text := out
			if err != nil {
				text = err.Error()
			}
			if (err == nil) != tc.exists || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, %v, want %q", out, err, tc.want)
			}
		})
	}
	_, err := run(t, "init", "--base-url", "https://x", "--kubernetes-secret", "s", "a=h", "b=i", "c=j")
	if err == nil || !strings.Contains(err.Error(), "works in a pod only") {
		t.Errorf("outside of a pod: got %v", err)
	}
}
