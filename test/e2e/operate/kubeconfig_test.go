package operate_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKubeconfigForSimpleClients reads the kubeconfig files as the official clients for Python
// and JavaScript do: they send the token unchanged and do not read other files.
func TestKubeconfigForSimpleClients(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	// A data directory of an earlier version, whose token ends with a newline.
	if err := os.WriteFile(filepath.Join(dir, "admin.token"), []byte("an-old-token-of-some-length\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "serve", "--data-dir", dir, "--http", "off", "--https", "127.0.0.1:"+port, "--ops", "off")
	p.await("https://127.0.0.1:" + port + "/readyz")
	if text, err := os.ReadFile(filepath.Join(dir, "admin.token")); err != nil ||
		string(text) != "an-old-token-of-some-length" {
		t.Errorf("admin.token: got %q, %v, want the token without a newline", text, err)
	}
	left, err := os.ReadFile(filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "kubeconfig")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the kubeconfig: %v, %v, want 0600, because it contains a token", info.Mode(), err)
	}
	printed, code := run(t, nil, "kubeconfig", "--static-token", "--data-dir", dir)
	if code != 0 {
		t.Fatalf("freshet kubeconfig: %s", printed)
	}
	for name, text := range map[string]string{"DIR/kubeconfig": string(left), "freshet kubeconfig": printed} {
		var file struct {
			Clusters []struct {
				Cluster struct {
					Server string `json:"server"`
					CA     string `json:"certificate-authority-data"`
				} `json:"cluster"`
			} `json:"clusters"`
			Users []struct {
				User struct {
					Token string `json:"token"`
				} `json:"user"`
			} `json:"users"`
		}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil || len(file.Clusters) != 1 || len(file.Users) != 1 {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		authority, err := base64.StdEncoding.DecodeString(file.Clusters[0].Cluster.CA)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(authority) {
			t.Fatalf("%s has no certificate authority: %v", name, err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			file.Clusters[0].Cluster.Server+"/apis/cloud.vendor.io/v1alpha1/namespaces/default/messagingclusters",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+file.Users[0].User.Token)
		trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs:    pool,
			MinVersion: tls.VersionTLS12,
		}}}
		response, err := trusting.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = response.Body.Close() // only the status is used
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200", name, response.StatusCode)
		}
	}
}
