package server

import (
	"fmt"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/config"
	"freshet/internal/ops/quota"
)

// openQuotas makes the limits of organizations that the configuration has.
func openQuotas(cfg *config.Config) (*quota.Book, error) {
	defaults, own, err := quotasOf(cfg)
	if err != nil {
		return nil, err
	}
	return quota.New(defaults, own), nil
}

// quotasOf are the limits of everybody, and of single organizations.
func quotasOf(cfg *config.Config) (defaults quota.Limits, own map[string]quota.Limits, err error) {
	q := &cfg.Quotas
	defaults = quota.Limits{
		quota.Clusters: int64(q.Clusters), quota.Instances: int64(q.Instances), quota.Topics: int64(q.Topics),
		quota.Subscriptions: int64(q.Subscriptions), quota.Subjects: int64(q.Subjects),
		quota.SchemaBytes: int64(q.SchemaBytes), quota.StoredBytes: int64(q.StoredBytes),
		quota.RequestsPerSecond: int64(q.RequestsPerSecond), quota.BytesPerSecond: int64(q.BytesPerSecond),
	}
	if q.StoredBytes == 0 {
		if defaults[quota.StoredBytes], err = shareOfDisk(cfg.DataDir); err != nil {
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

// shareOfDisk is what an organization may store unless the configuration says
// something else: three quarters of the disk, so that one cannot fill it alone.
func shareOfDisk(dir string) (int64, error) {
	total, _, err := diskBytes(dir)
	return total / 4 * 3, err
}

// diskBytes returns the size of the disk that a directory is on, and what is free.
func diskBytes(dir string) (total, free int64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, 0, fmt.Errorf("asking for the size of the disk: %w", err)
	}
	block := int64(disk.Bsize) //nolint:unconvert // its type depends on the system
	return int64(disk.Blocks) * block, int64(disk.Bavail) * block, nil
}

// quotaMetrics describe what organizations may have, and have.
type quotaMetrics struct{ used, limit, refused *prometheus.Desc }

func newQuotaMetrics() quotaMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_quota_"+name, help, []string{"organization", "resource"}, nil)
	}
	return quotaMetrics{
		used:    desc("used", "What an organization has of a resource, or used of a rate in the last second."),
		limit:   desc("limit", "What an organization may have of a resource; without a limit there is no series."),
		refused: desc("refusals_total", "Calls that were refused because of a quota."),
	}
}

func (m *quotaMetrics) collect(ch chan<- prometheus.Metric, book *quota.Book) {
	book.Each(func(o *quota.Organization) {
		limits, refused := o.Limits(), o.Refusals()
		for r := range quota.Count {
			labels := []string{o.Name(), r.String()}
			if r != quota.Instances { // which the resource API counts
				ch <- prometheus.MustNewConstMetric(m.used, prometheus.GaugeValue, float64(o.Used(r)), labels...)
			}
			if limits[r] > 0 {
				ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(limits[r]), labels...)
			}
			ch <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(refused[r]), labels...)
		}
	})
}
