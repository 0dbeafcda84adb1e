package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/testserver"
)

const resources = "/apis/cloud.vendor.io/v1alpha1/"

// makeBadCalls makes calls that are wrong or abandoned by the client: selectors that do not parse, a
// resourceVersion of the future, a value of the wrong type, a version of HTTP and a transfer encoding that do
// not exist, and requests without a reader of the response.
func makeBadCalls(t *testing.T, server *testserver.Server) {
	t.Helper()
	for _, query := range []string{
		"labelSelector=a%20b%20c", "fieldSelector=%3D%3D%3D", "labelSelector=a%20in%20(",
		"limit=x", "watch=1&labelSelector=!!!",
	} {
		must(t, server, 400, "GET", resources+"serviceaccounts?"+query, "")
	}
	must(t, server, 504, "GET", resources+"serviceaccounts?resourceVersion=99999999", "")
	must(t, server, 422, "POST", resources+"namespaces/default/messagingclusters",
		`{"metadata":{"name":"bad"},"spec":{"instanceName":"default","location":"local",`+
			`"config":{"protocols":{"stream":"on"}}}}`)
	must(t, server, 204, "PUT", adminPath+"rough/subscription/s", "")
	// A truncated request, and requests whose responses are not read.
	for _, request := range []string{
		"GET /apis HT",
		"GET /apis HTTP/3.7\r\nHost: h\r\n\r\n",
		"POST /subjects/a/versions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
		"GET /openapi/v2 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + server.Token + "\r\n\r\n",
		"GET " + resources + "serviceaccounts HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " +
			server.Token + "\r\n\r\n",
		"POST " + resources + "namespaces/default/serviceaccounts HTTP/1.1\r\nHost: h\r\nContent-Length: " +
			"99\r\nAuthorization: Bearer " + server.Token + "\r\n\r\n{",
		"POST " + topicPath + "rough/message HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\nAuthorization: Bearer " +
			server.Token + "\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	abandon(t, server, "POST", topicPath+"rough/s/message?timeoutMillis=20000")
	abandon(t, server, "GET", resources+"serviceaccounts?watch=1")
}

// abandon begins a call that waits, and closes the connection while the server handles it.
func abandon(t *testing.T, server *testserver.Server, method, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+server.Token)
	id := fmt.Sprintf("abandoned-%d", len(path))
	r.Header.Set("X-Request-Id", id)
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if response, err := http.DefaultClient.Do(r); err == nil {
			close(begun)
			<-ctx.Done()
			_ = response.Body.Close()
		}
	}()
	if strings.Contains(path, "watch") {
		<-begun // the header is sent immediately
	} else {
		eventually(t, "the long poll waits", func() bool {
			const waiting = `freshet_messaging_waiting_consumers{cluster="default",organization="default"}`
			return series(t, server)[waiting] == "1"
		})
	}
	cancel()
	<-done
	eventually(t, "the access log line of "+id, func() bool { return strings.Contains(read(t, server.LogFile()), id) })
}

// TestLogIsQuiet checks that the log has an access line for every request, and no warnings or
// errors about client mistakes, disconnects or the shutdown.
func TestLogIsQuiet(t *testing.T) {
	t.Parallel()
	server, _ := start(t, "{}\n")
	makeBadCalls(t, server)
	stop(t, server)
	text := read(t, server.LogFile())
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			t.Errorf("a library bypasses the log: %s", line)
		}
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			t.Errorf("got line %s, want no warnings or errors", line)
		}
		if strings.Contains(line, "level=INFO") && strings.Contains(line, "library=") {
			t.Errorf("a library logs at level INFO: %s", line)
		}
	}
	for _, want := range []string{"method=PUT " +
		"route=/admin/v2/{domain}/{tenant}/{namespace}/{topic}/subscription/{subscription} path=" + adminPath +
		"rough/subscription/s status=204", "principal=admin@default"} {
		if !strings.Contains(text, want) {
			t.Errorf("log has no line with %q:\n%s", want, text)
		}
	}
}

// TestJSONLog checks that every line is a JSON record, and that SIGHUP reopens the log files.
func TestJSONLog(t *testing.T) {
	t.Parallel()
	server, config := start(t, "log: {format: json, file: log/freshet.log}\n")
	file := filepath.Join(server.DataDir, "log", "freshet.log")
	audit := filepath.Join(server.DataDir, "audit.log")
	must(t, server, 404, "GET", "/subjects/before/versions", "")
	must(t, server, 204, "PUT", adminPath+"before/subscription/s", "")
	for _, path := range []string{file, audit} {
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
	}
	settings := "log: {format: json, file: log/freshet.log, access: errors}\nlimits: {connections: 500}\n"
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	sendSIGHUP(t, server)
	eventually(t, "the warning about a restart", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), `"settings":"limits.connections"`)
	})
	must(t, server, 204, "PUT", adminPath+"after/subscription/s", "")
	must(t, server, 404, "GET", "/subjects/after/versions", "")
	stop(t, server)
	if text := read(t, server.LogFile()); text != "" {
		t.Errorf("got %q outside of the log file, want nothing", text)
	}
	for path, want := range map[string][]string{
		file + ".old": {`"msg":"Freshet is ready"`, "/subjects/before/versions", adminPath + "before/subscription/s"},
		file:          {"/subjects/after/versions", `"msg":"stopping"`, `"changed":"log.access"`},
	} {
		text := read(t, path)
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: %q is not a JSON record", path, line)
			}
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s is missing in\n%s", path, part, text)
			}
		}
	}
	if strings.Contains(read(t, file), adminPath+"after") {
		t.Error("successful request is in the log, want errors only")
	}
	if old, new := read(t, audit+".old"), read(t, audit); !strings.Contains(old, "before") ||
		strings.Contains(new, "before") || !strings.Contains(new, "after") {
		t.Errorf("audit trail was not continued in a new file: got\n%s\nand\n%s", old, new)
	}
}

// TestBadConfigurationChangesNothing checks that a server continues to run when it reloads an
// invalid configuration.
func TestBadConfigurationChangesNothing(t *testing.T) {
	t.Parallel()
	server, config := start(t, "{}\n")
	if err := os.WriteFile(config, []byte("log: {level: loud}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sendSIGHUP(t, server)
	eventually(t, "the error", func() bool { return strings.Contains(read(t, server.LogFile()), "log.level") })
	must(t, server, 200, "GET", "/subjects", "")
	stop(t, server)
}
