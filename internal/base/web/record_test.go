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
