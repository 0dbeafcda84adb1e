package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/poll"
	"freshet/test/tally"
	"freshet/test/testserver"
)

// guess requests a token with a wrong secret through a client, and returns the status and the
// error description.
func guess(t *testing.T, client *http.Client, server *testserver.Server, forwarded string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/oauth/token",
		strings.NewReader(`{"grant_type":"client_credentials","client_id":"nobody","client_secret":"guess"}`))
	if err != nil {
		t.Fatal(err)
	}
	if forwarded != "" {
		r.Header.Set("X-Forwarded-For", forwarded)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body struct {
		Description string `json:"error_description"`
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body.Description
}

// awaitAudit waits until the audit log of failures has a record with an address, and returns the log.
func awaitAudit(t *testing.T, server *testserver.Server, address string) (log []byte) {
	t.Helper()
	poll.Until(t, time.Minute, "an audit record with "+address, func() bool {
		var err error
		log, err = os.ReadFile(filepath.Join(server.DataDir, "audit-failed.log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return bytes.Contains(log, []byte(address))
	})
	return log
}

// TestAttackAddressBehindAProxy guesses secrets through a trusted proxy. The limit of one client of
// the proxy must not apply to another, and no client may choose its own address.
func TestAttackAddressBehindAProxy(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{Env: []string{"FRESHET_PROXIES_TRUSTED=127.0.0.0/8"}})
	attempts, successes := 0, 0
	limited := 0
	for i := range 30 { // what a client writes in front of the proxy's entry does not count
		if status, _ := guess(t, http.DefaultClient, server, fmt.Sprintf("192.0.2.%d, 203.0.113.1", i)); status == 429 {
			limited++
		}
	}
	attempts++
	if limited < 5 {
		successes++
		t.Errorf("client behind the proxy: %d of 30 guesses were limited, want about 10", limited)
	}
	attempts++
	if status, text := guess(t, http.DefaultClient, server, "203.0.113.2"); status != 401 {
		successes++
		t.Errorf("another client behind the proxy: got %d %s, want 401", status, text)
	}
	attempts++
	if log := awaitAudit(t, server, "203.0.113.2:"); !bytes.Contains(log, []byte("203.0.113.1:")) ||
		bytes.Contains(log, []byte("192.0.2.")) {
		successes++
		t.Error("audit records do not have the addresses of the clients")
	}
	tally.Attack(t, "hide behind a proxy", attempts, successes)
}

// TestAttackAddressWithoutAProxy sends X-Forwarded-For to a server without trusted proxies, and
// the PROXY protocol to one that trusts another address.
func TestAttackAddressWithoutAProxy(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{Env: []string{
		"FRESHET_PROXIES_TRUSTED=192.0.2.9", "FRESHET_PROXIES_PROTOCOL=http",
	}})
	limited, attempts := 0, 30
	for i := range attempts {
		if status, _ := guess(t, http.DefaultClient, server, fmt.Sprintf("203.0.113.%d", i)); status == 429 {
			limited++
		}
	}
	successes := 0
	if limited < 5 {
		successes++
		t.Errorf("%d of 30 guesses were limited, want about 10", limited)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	attempts++
	_, _ = io.WriteString(conn, "PROXY TCP4 203.0.113.77 192.0.2.1 4711 8080\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, _ := io.ReadAll(conn) // the server closes the connection
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
		successes++
		t.Errorf("PROXY header of a client: got %q, want 400", answer)
	}
	tally.Attack(t, "choose the own address", attempts, successes)
}

// proxyHeader is what a proxy sends at the start of a connection.
const proxyHeader = "PROXY TCP4 203.0.113.77 192.0.2.1 4711 8443\r\n"

// TestProxyProtocol connects through a proxy over TLS and over the Kafka protocol.
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{
		Kafka: true,
		Env:   []string{"FRESHET_PROXIES_TRUSTED=127.0.0.1", "FRESHET_PROXIES_PROTOCOL=https,stream"},
	})
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's own server
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				_, err = io.WriteString(conn, proxyHeader)
			}
			return conn, err
		},
	}}
	secure := *server
	secure.URL = server.HTTPS
	if status, text := guess(t, client, &secure, ""); status != 401 {
		t.Errorf("through the proxy: got %d %s, want 401", status, text)
	}
	awaitAudit(t, server, "203.0.113.77:4711")
	// ApiVersions 0 with correlation id 7.
	const versions = "\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff"
	for header, answered := range map[string]bool{proxyHeader: true, "": false} {
		conn, err := net.Dial("tcp", server.Kafka)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, header+versions) // the server may close the connection
		response := make([]byte, 8)
		_, err = io.ReadFull(conn, response)
		if got := err == nil && response[7] == 7; got != answered {
			t.Errorf("Kafka with header %q: answered is %v (%v), want %v", header, got, err, answered)
		}
		_ = conn.Close()
	}
}
