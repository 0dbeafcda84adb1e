package backup

import "github.com/prometheus/client_golang/prometheus"

var (
	backupsDesc = prometheus.NewDesc("freshet_backups_total", "Scheduled backups, by outcome.",
		[]string{"outcome"}, nil)
	lastDesc = prometheus.NewDesc("freshet_backup_last_timestamp_seconds",
		"Start time of the newest scheduled backup.", nil, nil)
)

// Describe implements prometheus.Collector.
func (b *Schedule) Describe(ch chan<- *prometheus.Desc) {
	ch <- backupsDesc
	ch <- lastDesc
}

// Collect implements prometheus.Collector. Without a schedule it collects nothing.
func (b *Schedule) Collect(ch chan<- prometheus.Metric) {
	if b.opts.Directory == "" {
		return
	}
	ch <- prometheus.MustNewConstMetric(lastDesc, prometheus.GaugeValue, float64(b.last.Load()))
	for outcome, n := range map[string]int64{"done": b.done.Load(), "failed": b.failed.Load()} {
		ch <- prometheus.MustNewConstMetric(backupsDesc, prometheus.CounterValue, float64(n), outcome)
	}
}
