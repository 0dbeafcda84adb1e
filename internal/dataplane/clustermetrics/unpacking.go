package clustermetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/base/unpacking"
)

// unpackingCollector collects the state of the memory for decompressed batches at each scrape.
type unpackingCollector struct {
	budget                       *unpacking.Budget
	bytes, limit                 *prometheus.Desc
	batches, restarted, rejected *prometheus.Desc
}

// NewUnpackingCollector returns a collector of the memory for decompressed batches.
func NewUnpackingCollector(budget *unpacking.Budget) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_unpack_"+name, help, labels, nil)
	}
	return &unpackingCollector{
		budget: budget,
		bytes: desc("bytes", "Memory for decompressed batches: working while they are checked or read, or cache.",
			"use"),
		limit:   desc("limit_bytes", "Limit of this memory.", "use"),
		batches: desc("batches_total", "Batches whose decoding began at their first message."),
		restarted: desc("restarts_total",
			"Batches whose decoding began again because the memory was short."),
		rejected: desc("rejected_total", "Calls that were rejected because no memory became free in time."),
	}
}

// Describe implements prometheus.Collector.
func (c *unpackingCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.bytes, c.limit, c.batches, c.restarted, c.rejected} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *unpackingCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.budget.Stats()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, float64(value), labels...)
	}
	const working, cache = "working", "cache"
	send(c.bytes, prometheus.GaugeValue, s.Working, working)
	send(c.bytes, prometheus.GaugeValue, s.Cached, cache)
	send(c.limit, prometheus.GaugeValue, s.WorkingLimit, working)
	send(c.limit, prometheus.GaugeValue, s.CacheLimit, cache)
	send(c.batches, prometheus.CounterValue, s.Opened)
	send(c.restarted, prometheus.CounterValue, s.Restarted)
	send(c.rejected, prometheus.CounterValue, s.Rejected)
}
