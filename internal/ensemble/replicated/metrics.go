package replicated

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what the shards of a member do when their logs do not acknowledge appends in time.
// It implements prometheus.Collector. A nil *Metrics counts nothing.
type Metrics struct{ asked, resent prometheus.Counter }

// NewMetrics returns counters at zero.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Metrics{
		asked: counter("freshet_log_asked_appends_total",
			"Questions to the leader of a shard's log about appends that it has not acknowledged in time."),
		resent: counter("freshet_log_resent_appends_total",
			"Appends that were sent to a shard's log again, because its leader did not have them."),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.asked.Describe(to)
	m.resent.Describe(to)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.asked.Collect(to)
	m.resent.Collect(to)
}

func (m *Metrics) countAsked() {
	if m != nil {
		m.asked.Inc()
	}
}

func (m *Metrics) countResent() {
	if m != nil {
		m.resent.Inc()
	}
}
