// Package storemetrics collects the size of the resource store and the usage of organizations
// at each scrape. Package etcd measures the store, package budget the usage. It has no locks.
package storemetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/etcd"
)

// Collector collects the metrics of the resource store.
type Collector struct {
	store etcd.Store
	usage func() map[string]budget.Usage

	size, quota, rejecting, objects, bytes *prometheus.Desc
}

// NewCollector returns a collector. usage returns the usage of each organization.
func NewCollector(store etcd.Store, usage func() map[string]budget.Usage) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return &Collector{
		store: store, usage: usage,
		size:  desc("etcd_size_bytes", "Size of the resource store: of its file, and the used part of it.", "of"),
		quota: desc("etcd_quota_bytes", "Quota of the resource store for callers; 0 if it is unknown."),
		rejecting: desc("etcd_refusing",
			"Whether the resource store rejects writes that add data, because it is nearly full."),
		objects: desc("resource_objects", "Stored objects of an organization.", "organization"),
		bytes:   desc("resource_bytes", "Size of the stored objects of an organization.", "organization"),
	}
}

// Describe implements prometheus.Collector.
func (m *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.size, m.quota, m.rejecting, m.objects, m.bytes} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *Collector) Collect(ch chan<- prometheus.Metric) {
	space := m.store.Space()
	gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(m.size, space.File, "file")
	gauge(m.size, space.Used, "used")
	gauge(m.quota, space.Quota)
	refusing := int64(0)
	if space.NearlyFull() {
		refusing = 1
	}
	gauge(m.rejecting, refusing)
	for organization, used := range m.usage() {
		gauge(m.objects, used.Objects, organization)
		gauge(m.bytes, used.Bytes, organization)
	}
}
