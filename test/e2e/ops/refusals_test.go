package ops

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestRefusals sends requests that Go's HTTP server rejects itself to the paths of every
// surface, and checks that the errors have the surface's format.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server, _ := start(t, "{}\n")
	surfaces := map[string]struct {
		path  string
		field string // field of an error that contains its text
	}{
		"messages":  {"/admin/rest/topics/v1/public/default/t/message", "reason"},
		"admin":     {"/admin/v2/persistent/public/default/t", "reason"},
		"registry":  {"/subjects/s", "message"},
		"stream":    {"/stream/subjects/s", "message"},
		"resources": {"/apis/cloud.vendor.io/v1alpha1/users", "message"},
		"token":     {"/oauth/token", "error_description"},
		"audit":     {"/audit/v1alpha1/records", "message"},
	}
	requests := map[string]struct {
		text   string // PATH is replaced
		status int
	}{
		"bad escape":        {"GET PATH/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		"bad line":          {"GET PATH\r\nHost: h\r\n\r\n", 400},
		"no host":           {"GET PATH HTTP/1.1\r\n\r\n", 400},
		"transfer encoding": {"POST PATH HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: brotli\r\n\r\n", 501},
		"large header": {
			"GET PATH HTTP/1.1\r\nHost: h\r\nX-Large: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", 431,
		},
		"huge header": {
			"GET PATH HTTP/1.1\r\nHost: h\r\nX-Large: " + strings.Repeat("x", 300<<10) + "\r\n\r\n", 431,
		},
	}
	for surface, s := range surfaces {
		for request, r := range requests {
			path := s.path
			if surface == "token" && request == "bad escape" {
				continue // the path with the escape is not that of the token endpoint
			}
			text := strings.Replace(r.text, "PATH", path, 1)
			for _, secure := range []bool{false, true} {
				status, contentType, body := raw(t, server.URL, server.HTTPS, secure, text)
				var fields map[string]any
				if err := json.Unmarshal([]byte(body), &fields); err != nil || status != r.status ||
					!strings.Contains(contentType, "json") {
					t.Errorf("%s, %s, TLS %v: got %d %s %q, want %d in the surface's format", surface, request, secure,
						status, contentType, body, r.status)
					continue
				}
				if message, _ := fields[s.field].(string); message == "" {
					t.Errorf("%s, %s: got %s, want a text in field %s", surface, request, body, s.field)
				}
			}
		}
	}
	stop(t, server)
}

func raw(t *testing.T, plain, secured string, secure bool, request string) (status int, contentType, body string) {
	t.Helper()
	address := strings.TrimPrefix(plain, "http://")
	if secure {
		address = strings.TrimPrefix(secured, "https://")
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if secure {
		//nolint:gosec // the server's own certificate
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	}
	go func() { _, _ = io.WriteString(c, request) }() // the server may close the connection early
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(text)
}
