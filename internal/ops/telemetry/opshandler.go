package telemetry

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
)

// OpsHandler returns the handler of the ops address: metrics, health and profiles. health serves
// /livez and /readyz.
func (m *Metrics) OpsHandler(log *slog.Logger, health http.Handler) http.Handler {
	mux := http.NewServeMux()
	log = Library(log, "metrics")
	mux.Handle("/metrics", m.Handler(log))
	mux.Handle("/metrics/all", m.HandlerForAll(log))
	for _, path := range []string{"/livez", "/readyz"} {
		mux.Handle(path, health)
		mux.Handle(path+"/", health)
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
