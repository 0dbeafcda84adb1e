package audit

import "github.com/prometheus/client_golang/prometheus"

var recordsDesc = prometheus.NewDesc("freshet_audit_records_total", "Audit records, by outcome.",
	[]string{"outcome"}, nil)

// Describe implements prometheus.Collector.
func (t *Trail) Describe(ch chan<- *prometheus.Desc) { ch <- recordsDesc }

// Collect implements prometheus.Collector.
func (t *Trail) Collect(ch chan<- prometheus.Metric) {
	stats := t.Stats()
	for outcome, n := range map[string]int64{
		"written": stats.Written, "dropped": stats.Dropped,
		"failed": stats.Failed, "suppressed": stats.Suppressed,
	} {
		ch <- prometheus.MustNewConstMetric(recordsDesc, prometheus.CounterValue, float64(n), outcome)
	}
}
