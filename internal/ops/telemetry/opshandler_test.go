package telemetry_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/base/version"
	"freshet/internal/ops/telemetry"
)

func TestOpsHandler(t *testing.T) {
	t.Parallel()
	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "health of "+r.URL.Path) // a recorder does not fail
	})
	handler := telemetry.NewMetrics(version.Get()).OpsHandler(slog.New(slog.DiscardHandler), health)
	for path, want := range map[string]string{
		"/metrics": "freshet_build_info", "/metrics/all": "freshet_build_info",
		"/livez": "health of /livez", "/readyz/etcd": "health of /readyz/etcd",
		"/debug/pprof/": "goroutine", "/debug/pprof/cmdline": "telemetry",
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %.80q, want 200 and %q in it", path, w.Code, w.Body, want)
		}
	}
}
