package refusal_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"freshet/internal/base/web"
	"freshet/internal/surfaces/refusal"
)

func TestStarting(t *testing.T) {
	t.Parallel()
	var waitsFor atomic.Pointer[string]
	var front refusal.Front
	front.Serve(refusal.Starting(&waitsFor))
	handler := web.Middleware(&front, slog.New(slog.DiscardHandler), nil)
	check := func(path string, status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != status || w.Body.String() != want {
			t.Errorf("%s: got %d %q, want %d %q", path, w.Code, w.Body, status, want)
		}
		if retry := w.Header().Get("Retry-After"); (retry == "1") != (status == http.StatusServiceUnavailable) {
			t.Errorf("%s: Retry-After is %q", path, retry)
		}
	}
	check("/readyz", http.StatusServiceUnavailable, web.ErrStarting.Error()+"\n")
	check("/livez", http.StatusOK, "ok")
	check("/livez/ping", http.StatusOK, "ok")
	check("/livezz", http.StatusServiceUnavailable, web.ErrStarting.Error()+"\n")
	text := "a majority of its ensemble"
	waitsFor.Store(&text)
	check("/healthz", http.StatusServiceUnavailable, "server is starting and waits for a majority of its ensemble\n")
	check("/livez", http.StatusOK, "ok")
	front.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) }))
	check("/readyz", http.StatusOK, "served")
}
