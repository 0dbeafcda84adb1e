package web_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/web"
)

func TestSlowBodyTimesOut(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	server := httptest.NewServer(web.LimitBodyTime(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	}), 50*time.Millisecond))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("reading a body that never ends succeeded, want an error")
	}
}

func TestHandlerMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	server := httptest.NewServer(web.LimitBodyTime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the deadline of the body ended a waiting handler")
		case <-time.After(4 * limit):
		}
		w.WriteHeader(http.StatusNoContent)
	}), limit))
	defer server.Close()
	res, err := http.Post(server.URL, "text/plain", strings.NewReader("whole"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("got status %d, want %d", res.StatusCode, http.StatusNoContent)
	}
}
