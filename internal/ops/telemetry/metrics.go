package telemetry

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"

	"freshet/internal/base/version"
)

// maxSeries limits the request series. Routes are patterns, so the limit is reached only
// if a surface records raw paths by mistake.
const maxSeries = 4_096

// Metrics has the metrics of the process in a registry of its own.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	bytes    *prometheus.CounterVec

	// series caches the counters by label, so that observing a request does not hash its
	// labels again (BenchmarkObserveRequest). The map is copied on write, which is rare, so
	// that readers take no lock.
	series   atomic.Pointer[map[seriesKey]*series]
	seriesMu sync.Mutex // serializes writers of series
}

type seriesKey struct {
	surface, route, method string
	class                  int
}

type series struct {
	requests prometheus.Counter
	duration prometheus.Observer
	bytes    prometheus.Counter
}

// NewMetrics returns a registry with the request metrics.
func NewMetrics(build version.Info) *Metrics {
	labels := []string{"surface", "route", "method"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshet_http_requests_total",
			Help: "Completed requests by surface, route pattern, method and status class.",
		}, append(labels, "class")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "freshet_http_request_duration_seconds",
			Help:    "Time from the arrival of a request to the end of its response, including waits of consume calls.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, labels),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshet_http_response_bytes_total",
			Help: "Bytes of response bodies sent.",
		}, labels),
	}
	m.series.Store(&map[seriesKey]*series{})
	buildInfo := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "freshet_build_info",
		Help:        "Always 1; the labels describe the build.",
		ConstLabels: prometheus.Labels{"version": build.Version, "commit": build.Commit, "go": build.Go},
	})
	buildInfo.Set(1)
	m.registry.MustRegister(m.requests, m.duration, m.bytes, buildInfo,
		collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Registry returns the registerer for further collectors.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// ObserveRequest implements web.Observer.
func (m *Metrics) ObserveRequest(surface, route, method string, status int, took time.Duration, bytes int64) {
	key := seriesKey{surface, route, knownMethod(method), min(max(status/100, 1), 5)}
	s, ok := (*m.series.Load())[key]
	if !ok {
		s = m.addSeries(key)
	}
	s.requests.Inc()
	s.duration.Observe(took.Seconds())
	s.bytes.Add(float64(bytes))
}

var classNames = [...]string{1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

func (m *Metrics) addSeries(key seriesKey) *series {
	m.seriesMu.Lock()
	defer m.seriesMu.Unlock()
	known := *m.series.Load()
	if s, ok := known[key]; ok {
		return s
	}
	labelled := key
	if len(known) >= maxSeries {
		labelled = seriesKey{surface: "overflow", route: "overflow", method: "OTHER", class: key.class}
		if s, ok := known[labelled]; ok {
			return s
		}
	}
	s := &series{
		requests: m.requests.WithLabelValues(labelled.surface, labelled.route, labelled.method,
			classNames[labelled.class]),
		duration: m.duration.WithLabelValues(labelled.surface, labelled.route, labelled.method),
		bytes:    m.bytes.WithLabelValues(labelled.surface, labelled.route, labelled.method),
	}
	grown := maps.Clone(known)
	grown[labelled] = s
	m.series.Store(&grown)
	return s
}

// knownMethod returns OTHER for unknown methods, so that clients cannot create series.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "OTHER"
}

// Gather collects Freshet's own metrics.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }

// allMetrics also gathers the metrics of the libraries.
type allMetrics struct{ *Metrics }

// Gather collects the metrics of Freshet, the Kubernetes libraries and etcd. All of them
// have metrics of the Go runtime; the first gatherer with a family wins.
func (m allMetrics) Gather() ([]*dto.MetricFamily, error) {
	var all []*dto.MetricFamily
	var failures []error
	seen := map[string]bool{}
	for _, gatherer := range []prometheus.Gatherer{
		m.registry, legacyregistry.DefaultGatherer,
		prometheus.DefaultGatherer,
	} {
		families, err := gatherer.Gather()
		failures = append(failures, err)
		for _, family := range families {
			if name := family.GetName(); !seen[name] {
				seen[name] = true
				all = append(all, family)
			}
		}
	}
	return all, errors.Join(failures...)
}

// Handler serves Freshet's own metrics, including some of the process and the Go
// runtime, in the formats of Prometheus.
func (m *Metrics) Handler(log *slog.Logger) http.Handler { return handler(m.registry, log) }

// HandlerForAll also serves the hundreds of series of the libraries.
func (m *Metrics) HandlerForAll(log *slog.Logger) http.Handler { return handler(allMetrics{m}, log) }

func handler(from prometheus.Gatherer, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	})
}
