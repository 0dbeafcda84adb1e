package refusal_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/ops/listen"
	"freshet/internal/surfaces/refusal"
)

// startRefusing serves HTTP and HTTPS like the server. Its only surface responds to refusals with a
// line of its own, and echoes the body of other requests.
func startRefusing(t *testing.T) (plain, secured string, tlsConfig *tls.Config) {
	t.Helper()
	surface := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := web.Refused(r); refused != nil {
			w.WriteHeader(refused.Status)
			_, _ = fmt.Fprintf(w, "refused at %s over TLS %v: %s", r.URL.Path, r.TLS != nil, refused.Text)
			return
		}
		_, _ = io.Copy(w, r.Body) // an echo
		_, _ = fmt.Fprintf(w, "served %s over %s, TLS %v", r.URL.Path, r.Proto, r.TLS != nil)
	})
	const headerSize = 8 << 10
	plain, secured = "127.0.0.1:0", "127.0.0.1:0"
	quiet := slog.New(slog.DiscardHandler)
	failed := make(chan error, 4)
	l, err := listen.Open(t.Context(), listen.Options{
		HTTP: &plain, HTTPS: &secured, Connections: 100, Shared: listen.NewLimit(100),
		ReadHeader: 10 * time.Second, Idle: 2 * time.Minute, HeaderSize: headerSize, Log: quiet, Failed: failed,
	})
	if err != nil {
		t.Fatal(err)
	}
	source := httptest.NewUnstartedServer(nil)
	source.StartTLS()
	t.Cleanup(source.Close)
	certificate := &tls.Config{
		Certificates: source.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"},
		MinVersion: tls.VersionTLS12,
	}
	main := web.Middleware(web.LimitHeaders(surface, headerSize), quiet, nil)
	l.ServeMain(main, &refusal.Malformed{Routes: surface, Log: quiet}, certificate)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		l.Close()
		select {
		case err := <-failed:
			t.Errorf("serving failed: %v", err)
		default:
		}
	})
	//nolint:gosec // the test uses its own certificate
	client := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	return plain, secured, client
}

// exchangeRaw sends bytes and reads one response.
func exchangeRaw(t *testing.T, c net.Conn, in *bufio.Reader, request string) (status int, body string) {
	t.Helper()
	go func() { _, _ = io.WriteString(c, request) }() // the server may close the connection early
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestRefusalsHaveTheSurfaceFormat(t *testing.T) {
	t.Parallel()
	plain, secured, config := startRefusing(t)
	big := strings.Repeat("x", 9<<10)
	huge := strings.Repeat("x", 40<<10)
	tests := map[string]struct {
		request string
		status  int
		want    string
	}{
		"bad escape":       {"GET /a/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "refused at /a/%zz "},
		"bad request line": {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "refused at /a "},
		"no host":          {"GET /a HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		"bad header":       {"GET /a HTTP/1.1\r\nHost: h\r\nb ad: x\r\n\r\n", 400, "refused at /a "},
		"two lengths": {
			"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
			400, "refused at /a ",
		},
		"version": {"GET /a HTTP/3.7\r\nHost: h\r\n\r\n", 505, "refused at /a "},
		"transfer encoding": {
			"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
			501, "refused at /a ",
		},
		"expectation":     {"POST /a HTTP/1.1\r\nHost: h\r\nExpect: miracles\r\n\r\n", 417, "refused at /a "},
		"large header":    {"GET /a HTTP/1.1\r\nHost: h\r\nX: " + big + "\r\n\r\n", 431, "the limit is 8192"},
		"huge header":     {"GET /a HTTP/1.1\r\nHost: h\r\nX: " + huge + "\r\n\r\n", 431, "refused at /a "},
		"absolute target": {"GET http://h/a/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "refused at /a/%zz "},
		"random bytes":    {"\x00\x01 and some more of the same\r\n\r\n", 400, "refused at / "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, over := range []string{"TCP", "TLS"} {
				c, err := net.Dial("tcp", map[string]string{"TCP": plain, "TLS": secured}[over])
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				if over == "TLS" {
					c = tls.Client(c, config)
				}
				status, body := exchangeRaw(t, c, bufio.NewReader(c), tc.request)
				if status != tc.status || !strings.Contains(body, tc.want) {
					t.Errorf("over %s: got %d %q, want %d and %q in it", over, status, body, tc.status, tc.want)
				}
			}
		})
	}
}

// TestRefusalsAfterGoodRequests checks that a response of a handler that looks like a refusal
// is not changed, and that a later refusal on the same connection is replaced.
func TestRefusalsAfterGoodRequests(t *testing.T) {
	t.Parallel()
	plain, _, _ := startRefusing(t)
	c, err := net.Dial("tcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	const canned = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: " +
		"close\r\n\r\n400 Bad Request"
	payload := canned + strings.Repeat(" ", 64<<10)
	for range 3 {
		status, body := exchangeRaw(t, c, in,
			fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(payload), payload))
		if status != http.StatusOK || !strings.HasPrefix(body, canned) {
			t.Fatalf("got %d %.80q, want the payload back", status, body)
		}
	}
	status, body := exchangeRaw(t, c, in, "GET /later/%zz HTTP/1.1\r\nHost: h\r\n\r\n")
	if status != http.StatusBadRequest || !strings.Contains(body, "refused at /later/%zz") {
		t.Errorf("got %d %q, want a refusal at /later/%%zz", status, body)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("after a refusal: got %v, want a closed connection", err)
	}
}

// TestProtocols checks HTTP/1.1 and HTTP/2 with and without TLS, and their responses to a
// header that is too large.
func TestProtocols(t *testing.T) {
	t.Parallel()
	plain, secured, config := startRefusing(t)
	for name, tc := range map[string]struct {
		url, want     string
		secure, clear bool
	}{
		"HTTP/1.1":           {"http://" + plain, "HTTP/1.1, TLS false", false, false},
		"HTTP/2 without TLS": {"http://" + plain, "HTTP/2.0, TLS false", false, true},
		"HTTPS, HTTP/2":      {"https://" + secured, "HTTP/2.0, TLS true", true, false},
		"HTTPS, HTTP/1.1":    {"https://" + secured, "HTTP/1.1, TLS true", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := &http.Transport{TLSClientConfig: config.Clone(), Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(!tc.secure && !tc.clear)
			transport.Protocols.SetHTTP2(tc.secure)
			transport.Protocols.SetUnencryptedHTTP2(tc.clear)
			client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			for range 3 {
				text, status := get(t, client, tc.url+"/x", "")
				if status != http.StatusOK || !strings.Contains(text, "served /x over "+tc.want) {
					t.Errorf("got %d %q, want %s", status, text, tc.want)
				}
			}
			if text, status := get(t, client, tc.url+"/x", strings.Repeat("x", 9<<10)); status != 431 ||
				!strings.Contains(text, "refused at /x") {
				t.Errorf("large header: got %d %q, want 431 in the format of the surface", status, text)
			}
		})
	}
}

func get(t *testing.T, client *http.Client, url, header string) (string, int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		request.Header.Set("X-Large", header)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), response.StatusCode
}
