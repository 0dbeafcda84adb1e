package web_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/web"
)

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := web.RecordOf(r.Context())
		rec.SetRoute("messages", "/topics/{topic}")
		rec.Principal = "ci@acme"
		w.WriteHeader(code)
	}
}

func TestAccessLine(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/topics/a%2Fb?token=secret", http.NoBody)
	r.Header.Set(web.RequestIDHeader, "me")
	_, _, log := serve(status(http.StatusNoContent), r)
	for _, want := range []string{
		"level=INFO", "method=POST", "route=/topics/{topic}", "path=/topics/a%2Fb", "status=204", "request_id=me",
		"principal=ci@acme", "µs",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("log line does not contain %s: %s", want, log)
		}
	}
	if strings.Contains(log, "secret") {
		t.Errorf("log line contains the query: %s", log)
	}
}

func TestAccessModes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode web.AccessMode
		want string // the logged statuses
	}{
		"all": {web.AccessAll, "200 404 500"}, "errors": {web.AccessErrors, "404 500"}, "off": {web.AccessOff, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			access := web.NewAccessLog(slog.New(slog.NewTextHandler(&out, nil)), tc.mode, 0)
			for _, code := range []int{200, 404, 500} {
				web.Middleware(status(code), access, nil).ServeHTTP(httptest.NewRecorder(),
					httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			}
			var got []string
			for _, field := range strings.Fields(out.String()) {
				if code, ok := strings.CutPrefix(field, "status="); ok {
					got = append(got, code)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got logged statuses %v, want %s", got, tc.want)
			}
		})
	}
}

func TestAccessRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		access := web.NewAccessLog(slog.New(slog.NewTextHandler(&out, nil)), web.AccessAll, 3)
		send := func(code, times int) {
			for range times {
				web.Middleware(status(code), access, nil).ServeHTTP(httptest.NewRecorder(),
					httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			}
		}
		send(200, 10)
		send(404, 2)
		if got := strings.Count(out.String(), "msg=request "); got != 5 {
			t.Errorf("got %d lines, want 3 of successes and 2 of failures:\n%s", got, out.String())
		}
		time.Sleep(time.Second)
		send(200, 1)
		if !strings.Contains(out.String(), "requests=7 failures=false") {
			t.Errorf("log does not report 7 dropped lines:\n%s", out.String())
		}
	})
}

// TestDisconnectIsNoError: a request whose client disconnected is logged, but not as an
// error of the server.
func TestDisconnectIsNoError(t *testing.T) {
	t.Parallel()
	ctx, hangUp := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	_, _, log := serve(func(w http.ResponseWriter, r *http.Request) {
		hangUp()
		web.RecordOf(r.Context()).Fail(r.Context().Err())
		w.WriteHeader(http.StatusServiceUnavailable)
	}, r)
	if strings.Contains(log, "level=ERROR") || !strings.Contains(log, "level=INFO") ||
		!strings.Contains(log, "client_gone=true") {
		t.Errorf("got %s, want level INFO and client_gone", log)
	}
	_, _, log = serve(func(http.ResponseWriter, *http.Request) { panic("boom") }, r)
	if !strings.Contains(log, "level=ERROR") {
		t.Errorf("after a panic: got %s, want level ERROR", log)
	}
}
