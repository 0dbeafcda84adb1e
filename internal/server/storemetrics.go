package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/etcd"
)

// storeMetrics are the size of the resource store and the usage of organizations.
type storeMetrics struct {
	size, quota, rejecting, objects, bytes *prometheus.Desc
}

func newStoreMetrics() storeMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return storeMetrics{
		size:  desc("etcd_size_bytes", "Size of the resource store: of its file, and the used part of it.", "of"),
		quota: desc("etcd_quota_bytes", "Quota of the resource store for callers; 0 if it is unknown."),
		rejecting: desc("etcd_refusing",
			"Whether the resource store rejects writes that add data, because it is nearly full."),
		objects: desc("resource_objects", "Stored objects of an organization.", "organization"),
		bytes:   desc("resource_bytes", "Size of the stored objects of an organization.", "organization"),
	}
}

func (m storeMetrics) collect(ch chan<- prometheus.Metric, room etcd.Space, usage map[string]budget.Usage) {
	gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(m.size, room.File, "file")
	gauge(m.size, room.Used, "used")
	gauge(m.quota, room.Quota)
	refusing := int64(0)
	if room.NearlyFull() {
		refusing = 1
	}
	gauge(m.rejecting, refusing)
	for organization, used := range usage {
		gauge(m.objects, used.Objects, organization)
		gauge(m.bytes, used.Bytes, organization)
	}
}
