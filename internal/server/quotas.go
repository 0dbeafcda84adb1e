package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/config"
	"freshet/internal/ops/disk"
	"freshet/internal/ops/quota"
)

// openQuotas returns the configured quotas of organizations.
func openQuotas(cfg *config.Config) (*quota.Organizations, error) {
	defaults, own, err := quotasOf(cfg)
	if err != nil {
		return nil, err
	}
	return quota.New(defaults, own), nil
}

// quotasOf returns the default limits, and those of single organizations.
func quotasOf(cfg *config.Config) (defaults quota.Limits, own map[string]quota.Limits, err error) {
	q := &cfg.Quotas
	defaults = quota.Limits{
		quota.Clusters: int64(q.Clusters), quota.Instances: int64(q.Instances), quota.Topics: int64(q.Topics),
		quota.Subscriptions: int64(q.Subscriptions), quota.Subjects: int64(q.Subjects),
		quota.SchemaBytes: int64(q.SchemaBytes), quota.StoredBytes: int64(q.StoredBytes),
		quota.RequestsPerSecond: int64(q.RequestsPerSecond), quota.BytesPerSecond: int64(q.BytesPerSecond),
	}
	if q.StoredBytes == 0 {
		if defaults[quota.StoredBytes], err = defaultStoredBytes(cfg.DataDir); err != nil {
			return defaults, nil, err
		}
	}
	own = map[string]quota.Limits{}
	for i := range q.Organizations {
		o := &q.Organizations[i]
		own[o.Name] = quota.Limits{
			quota.Clusters: int64(o.Clusters), quota.Instances: int64(o.Instances), quota.Topics: int64(o.Topics),
			quota.Subscriptions: int64(o.Subscriptions), quota.Subjects: int64(o.Subjects),
			quota.SchemaBytes: int64(o.SchemaBytes), quota.StoredBytes: int64(o.StoredBytes),
			quota.RequestsPerSecond: int64(o.RequestsPerSecond), quota.BytesPerSecond: int64(o.BytesPerSecond),
		}
	}
	return defaults, own, nil
}

// defaultStoredBytes returns the default of quotas.storedBytes: 75 % of the disk, so that one
// organization cannot fill it.
func defaultStoredBytes(dir string) (int64, error) {
	total, _, err := disk.Space(dir)
	return total / 4 * 3, err
}

// quotaMetrics are the quotas of organizations and their usage.
type quotaMetrics struct{ used, limit, refused *prometheus.Desc }

func newQuotaMetrics() quotaMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_quota_"+name, help, []string{"organization", "resource"}, nil)
	}
	return quotaMetrics{
		used:    desc("used", "Usage of a resource by an organization; for a rate, that of the last second."),
		limit:   desc("limit", "Quota of a resource of an organization; no series if it is unlimited."),
		refused: desc("refusals_total", "Calls rejected because of a quota."),
	}
}

func (m *quotaMetrics) collect(ch chan<- prometheus.Metric, book *quota.Organizations) {
	book.Each(func(o *quota.Organization) {
		limits, refused := o.Limits(), o.Rejections()
		for r := range quota.Count {
			labels := []string{o.Name(), r.String()}
			if r != quota.Instances { // the resource API counts instances
				ch <- prometheus.MustNewConstMetric(m.used, prometheus.GaugeValue, float64(o.Used(r)), labels...)
			}
			if limits[r] > 0 {
				ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(limits[r]), labels...)
			}
			ch <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(refused[r]), labels...)
		}
	})
}
