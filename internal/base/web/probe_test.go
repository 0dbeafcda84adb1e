package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"freshet/internal/base/web"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("etcd failed: " + strings.Repeat("x", 10_000)))
	})
	if err := web.Probe(mux, "/livez")(context.Background()); err != nil {
		t.Errorf("a live server: got %v, want no error", err)
	}
	err := web.Probe(mux, "/broken")(context.Background())
	if err == nil || !strings.Contains(err.Error(), "/broken returned 500: etcd failed") || len(err.Error()) > 2_000 {
		t.Errorf("a broken server: got %.100v, want the status and the start of the text", err)
	}
}
