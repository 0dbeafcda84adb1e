package web_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/base/web"
	"freshet/test/tally"
)

// TestAttackLogByQuotedInput: an error that quotes a large body does not write the whole
// body to the log.
func TestAttackLogByQuotedInput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	handler := web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.RecordOf(r.Context()).Fail(errors.New("invalid value: " + strings.Repeat("é", 1<<20)))
		w.WriteHeader(http.StatusBadRequest)
	}), log, nil)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	large := 0
	if out.Len() > 16<<10 || !strings.Contains(out.String(), "invalid value: é") {
		large = 1
		t.Errorf("log line has %d bytes: %.200s", out.Len(), out.String())
	}
	tally.Attack(t, "large lines in the log", 1, large)
}

// TestLevelOfClientErrors checks that mistakes of clients are not logged as errors, whatever their status, and
// that failures of the server are.
func TestLevelOfClientErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"unknown transfer encoding": {http.StatusNotImplemented, "no", "level=INFO"},
		"unknown version of HTTP":   {http.StatusHTTPVersionNotSupported, "no", "level=INFO"},
		"mistake in the body":       {http.StatusGatewayTimeout, "your mistake", "level=INFO"},
		"timeout":                   {http.StatusGatewayTimeout, "too slow", "level=ERROR"},
		"failure":                   {http.StatusInternalServerError, "broken", "level=ERROR"},
	} {
		var out bytes.Buffer
		handler := web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			web.RecordOf(r.Context()).IsClientError = func(_ int, body []byte) bool {
				return strings.HasPrefix(string(body), "your")
			}
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}), slog.New(slog.NewTextHandler(&out, nil)), nil)
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: got %s, want %s", name, out.String(), tc.want)
		}
	}
}
