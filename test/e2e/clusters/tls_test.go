package clusters_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"freshet/test/testserver"
)

// TestNamesOverTLS checks that clients that verify certificates can reach a cluster by its
// name, although the organization is created after the server has started.
func TestNamesOverTLS(t *testing.T) {
	t.Parallel()
	w := start(t, testserver.Options{})
	defer w.stop()
	cluster := w.cluster("later", "standard")
	host := cluster.Spec.ServiceEndpoints[0].DNSName
	address := strings.TrimPrefix(w.HTTPS, "https://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ca, pem := authorityOf(t, w)
	url := "https://" + net.JoinHostPort(host, port) + "/stream/subjects"

	t.Run("Go", func(t *testing.T) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address) // the name does not resolve
			},
		}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.Token)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }() // only the status is used
		if res.StatusCode != http.StatusOK {
			t.Errorf("got %d, want 200", res.StatusCode)
		}
		if _, err := client.Get("https://" + net.JoinHostPort("bank.example", port) + "/"); err == nil ||
			!strings.Contains(err.Error(), "certificate") {
			t.Errorf("name of another domain: got %v, want a certificate mismatch", err)
		}
	})
	t.Run("curl", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("curl is not installed")
		}
		for _, args := range [][]string{
			{"--resolve", host + ":" + port + ":127.0.0.1", url},
			{w.HTTPS + "/clusters/later/prod/stream/subjects"},
			{
				"--resolve", "localhost:" + port + ":127.0.0.1",
				"https://localhost:" + port + "/clusters/later/prod/stream/subjects",
			},
		} {
			args = append([]string{"-sS", "--fail-with-body", "--cacert", ca, "-H", "Authorization: Bearer " + w.Token},
				args...)
			out, err := exec.CommandContext(t.Context(), "curl", args...).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "[]" {
				t.Errorf("curl %s: got %v, %s, want []", args[len(args)-1], err, out)
			}
		}
	})
}
