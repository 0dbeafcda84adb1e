package operate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/pages"
	"freshet/test/testserver"
)

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentedConfigurations starts a server with every configuration in the
// documentation; only the paths and ports are replaced.
func TestDocumentedConfigurations(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"howto/operate.md", "howto/backup.md", "reference/configuration.md"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			blocks := pages.Blocks(page(t, path), "yaml")
			if len(blocks) == 0 {
				t.Fatal("page has no configuration")
			}
			for _, block := range blocks {
				dir, port := t.TempDir(), freePort(t)
				certificate(t, dir)
				file := filepath.Join(dir, "freshet.yaml")
				text := strings.NewReplacer(
					"/var/lib/freshet", filepath.Join(dir, "data"), "dataDir: freshet-data",
					"dataDir: "+filepath.Join(dir, "data"),
					"/etc/freshet/", dir+"/", "/backup/freshet", filepath.Join(dir, "backups"), "https: 0.0.0.0:8443",
					"https: 127.0.0.1:"+port, "https: 127.0.0.1:8443", "https: 127.0.0.1:"+port,
					"http: 127.0.0.1:8080", "http: 127.0.0.1:0", "ops: 127.0.0.1:8081", "ops: 127.0.0.1:0",
				).Replace(block)
				if !strings.Contains(text, "https:") {
					text += "http: off\nhttps: 127.0.0.1:" + port + "\n"
				}
				if !strings.Contains(text, "ops:") {
					text += "ops: off\n"
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, code := run(t, nil, "config", "check", file); code != 0 {
					t.Fatalf("freshet config check: %s\n%s", out, text)
				}
				p := start(t, nil, "serve", "--config", file)
				p.await("https://127.0.0.1:" + port + "/readyz")
			}
		})
	}
}

// certificate creates tls.crt and tls.key for the loopback address.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecretsPage runs the commands in docs/howto/secrets.md unchanged.
func TestSecretsPage(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	dir := t.TempDir()
	server, err := testserver.Start(t.Context(), program(t), dir,
		testserver.Options{DataDir: filepath.Join(dir, "freshet-data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	create(t, server, "serviceaccounts", map[string]any{"metadata": map[string]any{"name": "ci"}})
	create(t, server, "apikeys",
		map[string]any{"metadata": map[string]any{"name": "ci"}, "spec": map[string]any{"serviceAccountName": "ci"}})
	if err := os.Symlink(program(t), filepath.Join(dir, "freshet")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c",
		pages.Commands(page(t, "howto/secrets.md")))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "base="+server.URL, "token="+server.Token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"new credentials of default/admin", "new credentials of acme/ci", `"revoke":true`,
		"(active)", "before-retiring-",
	} {
		if !strings.Contains(strings.ReplaceAll(string(out), `": `, `":`), want) {
			t.Errorf("output does not contain %q:\n%s", want, out)
		}
	}
}

func create(t *testing.T, server *testserver.Server, resource string, object map[string]any) {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		server.URL+"/apis/cloud.vendor.io/v1alpha1/namespaces/acme/"+resource, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+server.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // only the status is used
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("creating %s: got %d, want 201", resource, response.StatusCode)
	}
}
