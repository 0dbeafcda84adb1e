package quota

import "github.com/prometheus/client_golang/prometheus"

// collector collects the quotas of organizations and their usage at each scrape.
type collector struct {
	organizations        *Organizations
	used, limit, refused *prometheus.Desc
}

// NewCollector returns a collector of the quotas and usage of all organizations.
func NewCollector(organizations *Organizations) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_quota_"+name, help, []string{"organization", "resource"}, nil)
	}
	return &collector{
		organizations: organizations,
		used:          desc("used", "Usage of a resource by an organization; for a rate, that of the last second."),
		limit:         desc("limit", "Quota of a resource of an organization; no series if it is unlimited."),
		refused:       desc("refusals_total", "Calls rejected because of a quota."),
	}
}

// Describe implements prometheus.Collector.
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.used
	ch <- m.limit
	ch <- m.refused
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	m.organizations.Each(func(o *Organization) {
		limits, refused := o.Limits(), o.Rejections()
		for r := range Count {
			labels := []string{o.Name(), r.String()}
			if r != Instances { // the resource API counts instances
				ch <- prometheus.MustNewConstMetric(m.used, prometheus.GaugeValue, float64(o.Used(r)), labels...)
			}
			if limits[r] > 0 {
				ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(limits[r]), labels...)
			}
			ch <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(refused[r]), labels...)
		}
	})
}
