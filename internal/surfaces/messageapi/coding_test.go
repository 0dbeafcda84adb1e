package messageapi_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
)

func zipped(t testing.TB, plain io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// zeros returns n zero bytes, which compress to nearly nothing.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestContentEncoding(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	w := newHarness(t, messaging.Options{Limits: messaging.Limits{MessageBytes: limit, BatchBytes: limit}})
	topic := w.CreateTopic("t", 0)
	hello := zipped(t, strings.NewReader("hello"))
	batch := zipped(t, strings.NewReader(`{"encoding":"text","messages":[{"payload":"hello"}]}`))
	for _, tc := range []struct {
		name, call, coding, body string
		status                   int
	}{
		{"gzip", "/message", "gzip", hello, 201},
		{"gzip in capitals", "/message", "GZIP", hello, 201},
		{"a batch", "/messages", "gzip", batch, 201},
		{"none", "/message", "identity", "hello", 201},
		{"empty", "/message", "gzip", "", 201},
		{"up to the limit", "/message", "gzip", zipped(t, zeros(limit)), 201},
		{"one byte over the limit", "/message", "gzip", zipped(t, zeros(limit+1)), 413},
		{"a gzip bomb", "/message", "gzip", zipped(t, zeros(40<<20)), 413},
		{"a gzip bomb in a batch", "/messages", "gzip", zipped(t, zeros(40<<20)), 413},
		{"many empty gzip members", "/message", "gzip", strings.Repeat(zipped(t, zeros(0)), limit/20), 413},
		{"not gzip", "/message", "gzip", "hello", 400},
		{"truncated", "/message", "gzip", hello[:len(hello)-4], 400},
		{"unknown", "/message", "br", "hello", 415},
		{"twice", "/message", "gzip, gzip", hello, 415},
		{"unknown on consume", "/s/message", "zstd", `{"timeoutMillis":0}`, 415},
		{"unknown on acknowledge", "/s/message/nack", "deflate", "1:1", 415},
	} {
		r := w.Call("POST", topic+tc.call, tc.body, "Content-Encoding", tc.coding)
		if r.Status != tc.status {
			t.Errorf("%s: got status %d %s, want %d", tc.name, r.Status, r.Body, tc.status)
		}
		if r.Status == 415 {
			r.WantHeaders("Accept-Encoding", "gzip, identity")
		}
	}
	for _, want := range []string{"hello", "hello", "hello", "hello", "", strings.Repeat("\x00", limit)} {
		w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(200).WantBody(want)
	}
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
	// The admin interface accepts the same encodings.
	w.Call("POST", "/admin/v2/namespaces/public/default/messageTTL", "1", "Content-Encoding", "br").WantStatus(415)
	w.Call("POST", "/admin/v2/namespaces/public/default/messageTTL", zipped(t, strings.NewReader("60")),
		"Content-Encoding", "gzip").WantStatus(204)
}
