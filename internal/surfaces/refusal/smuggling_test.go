package refusal_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"freshet/internal/ops/listen"
	"freshet/internal/surfaces/refusal"
	"freshet/test/tally"
)

// dialer connects to a port.
type dialer func(t *testing.T) net.Conn

// ports returns how to connect to the plain and the TLS port of a server.
func ports(t *testing.T) map[string]dialer {
	t.Helper()
	plain, secured, config := startRefusing(t)
	return map[string]dialer{
		"HTTP": func(t *testing.T) net.Conn {
			t.Helper()
			conn, err := net.Dial("tcp", plain)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
		"HTTPS": func(t *testing.T) net.Conn {
			t.Helper()
			conn, err := tls.Dial("tcp", secured, config)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
		"ops": opsPort(t),
	}
}

// opsPort serves an ops port like the server.
func opsPort(t *testing.T) dialer {
	t.Helper()
	address := "127.0.0.1:0"
	l, err := listen.Open(t.Context(), listen.Options{
		Ops: &address, ReadHeader: time.Minute, Idle: time.Minute, HeaderSize: 8 << 10, Log: discard(),
		Failed: make(chan error, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	l.ServeOps(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		_, _ = io.WriteString(w, "served "+r.URL.Path)
	}), &refusal.Malformed{Routes: refusal.Plain, Log: discard()})
	return func(t *testing.T) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

// send writes a text, in one piece or in single bytes, and returns the responses until the server
// closes the connection or has sent as many as are wanted.
func send(t *testing.T, conn net.Conn, text string, slowly bool, want int) (responses []string, closed bool) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	from := io.Reader(strings.NewReader(text))
	if slowly {
		from = iotest.OneByteReader(from)
	}
	go func() { _, _ = io.Copy(struct{ io.Writer }{conn}, from) }() // the server may close early
	in := bufio.NewReader(conn)
	for len(responses) < want {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return responses, true
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return responses, true
		}
		responses = append(responses, fmt.Sprint(response.StatusCode, " ", string(body)))
		if response.Close {
			_, err := in.ReadByte()
			return responses, err != nil
		}
	}
	return responses, false
}

func isStatus(response, status string) bool { return strings.HasPrefix(response, status+" ") }

// validRequests are requests that are valid, each with the path /before.
var validRequests = map[string]string{
	"no request":     "",
	"without a body": "GET /before HTTP/1.1\r\nHost: x\r\n\r\n",
	"with a length":  "POST /before HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
	"in chunks":      "POST /before HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"in chunks with extensions and a trailer": "POST /before HTTP/1.1\r\nHost: x\r\nTrailer: X-T\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n02\r\nlo\r\n0;x\r\nX-T: 1\r\n\r\n",
	"that looks like another": "POST /before HTTP/1.1\r\nHost: x\r\nContent-Length: 54\r\n\r\n" +
		"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n",
	"with folded lines": "GET /before HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Content-Length: 4\r\n" +
		" Transfer-Encoding: chunked\r\n\r\n",
}

// smuggled is a second request, and a third that ends the connection.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n" +
	"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// ambiguousRequests have two lengths, and a second request inside one of them.
var ambiguousRequests = map[string]string{
	"length first": "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"0\r\n\r\n" + smuggled,
	"length last": "POST /two HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" +
		smuggled,
	"other case": "POST /two HTTP/1.1\r\nHost: x\r\ncontent-lENGTH: 5\r\ntRANSFER-ENCODING: Chunked\r\n\r\n0\r\n\r\n" +
		smuggled,
	"length of zero": "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"0\r\n\r\n" + smuggled,
	"far apart": "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: " + strings.Repeat("y", 6000) +
		"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
	"folded value": "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" +
		"0\r\n\r\n" + smuggled,
	"line feeds only": "POST /two HTTP/1.1\nHost: x\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\r\n\r\n" +
		smuggled,
	"wrong length": "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"0\r\n\r\n" + smuggled,
	"two codings": "POST /two HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" +
		"Content-Length: 5\r\n\r\n0\r\n\r\n" + smuggled,
	"get": "GET /two HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"0\r\n\r\n" + smuggled,
	"star": "OPTIONS * HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
		smuggled,
	"HTTP/1.0": "POST /two HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nContent-Length: 5\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
	"HTTP/1.0 without a length": "POST /two HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n" + smuggled,
}

// TestAttackRequestSmuggling sends requests with two lengths, alone and after other requests on the
// same connection. The server must reject them and must not serve what follows.
func TestAttackRequestSmuggling(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for port, connect := range ports(t) {
		for before, first := range validRequests {
			for name, ambiguous := range ambiguousRequests {
				for _, slowly := range []bool{false, true} {
					if slowly && port != "HTTP" {
						continue
					}
					conn := connect(t)
					attempts++
					got, closed := send(t, conn, first+ambiguous, slowly, 5)
					_ = conn.Close()
					if first != "" {
						if len(got) == 0 || !isStatus(got[0], "200") || !strings.Contains(got[0], "served /before") {
							t.Errorf("%s, request %s: got %q, want it served", port, before, got)
							continue
						}
						got = got[1:]
					}
					if len(got) != 1 || !closed || !isStatus(got[0], "400") && !isStatus(got[0], "501") {
						successes++
						t.Errorf("%s, %s after a request %s: got %q, closed %v; want 400 and the end", port, name,
							before, got, closed)
					}
				}
			}
		}
	}
	tally.Attack(t, "smuggle a request into another", attempts, successes)
}

// TestPipelinedRequests checks that all combinations of valid requests are served in order.
func TestPipelinedRequests(t *testing.T) {
	t.Parallel()
	for port, connect := range ports(t) {
		for _, slowly := range []bool{false, true} {
			var text strings.Builder
			want := 0
			for _, a := range validRequests {
				for _, b := range validRequests {
					for _, request := range []string{a, b} {
						if request != "" {
							text.WriteString(request)
							want++
						}
					}
				}
			}
			text.WriteString("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" + validRequests["in chunks"])
			want += 2
			conn := connect(t)
			got, _ := send(t, conn, text.String(), slowly, want)
			_ = conn.Close()
			if len(got) != want {
				t.Errorf("%s, slowly %v: got %d responses, want %d: %q", port, slowly, len(got), want, got)
			}
			for i, response := range got {
				if !strings.HasPrefix(response, "200 ") {
					t.Errorf("%s, response %d: got %q, want 200", port, i, response)
				}
			}
		}
	}
}

// TestTwoLengthsHaveTheFormOfTheSurface checks the text of the error.
func TestTwoLengthsHaveTheFormOfTheSurface(t *testing.T) {
	t.Parallel()
	plain, _, _ := startRefusing(t)
	conn, err := net.Dial("tcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, closed := send(t, conn, ambiguousRequests["length first"], false, 2)
	want := "400 refused at /two over TLS false: " +
		"request has both Content-Length and Transfer-Encoding; send one of them"
	if len(got) != 1 || got[0] != want || !closed {
		t.Errorf("got %q, closed %v; want %q", got, closed, want)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
