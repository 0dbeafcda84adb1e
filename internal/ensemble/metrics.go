package ensemble

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the members and of the log's replicas, as this member observes them, and of this member's files.
var (
	liveSeries = prometheus.NewDesc("freshet_ensemble_member_live",
		"Whether a member has its lease, as this member sees it: 1 or 0.", []string{"member"}, nil)
	clockSeries = prometheus.NewDesc("freshet_ensemble_clock_difference_seconds",
		"How far the clocks of the members differ; 0 up to a second.", nil, nil)
	missingSeries = prometheus.NewDesc("freshet_log_replicas_missing",
		"Replicas of streams of the log and of its meta layer that a member should have and that are missing.",
		[]string{"member"}, nil)
	lagSeries = prometheus.NewDesc("freshet_log_replica_lag",
		"Entries by which the replica of a member that lags most is behind.", []string{"member"}, nil)
	stuckSeries = prometheus.NewDesc("freshet_log_streams_without_majority",
		"Streams of the log that have no leader or no majority of current replicas.", nil, nil)
	damagedSeries = prometheus.NewDesc("freshet_integrity_damaged_parts",
		"Damaged parts of this member's files that are not replaced yet.", nil, nil)
	differSeries = prometheus.NewDesc("freshet_integrity_differing_parts",
		"Parts of this member that differ from another copy, without a majority.", nil, nil)
	damagesSeries = prometheus.NewDesc("freshet_integrity_damages_total",
		"Times that damage was found in this member's files.", nil, nil)
	verifiedSeries = prometheus.NewDesc("freshet_integrity_last_verified_timestamp_seconds",
		"When the part of this member's files that was verified longest ago was verified.", nil, nil)
	quarantineSeries = prometheus.NewDesc("freshet_integrity_quarantine_bytes",
		"Size of the damaged files that this member keeps for a day.", nil, nil)
)

// Collector returns the collector of the observed metrics.
func (m *Member) Collector() prometheus.Collector { return collector{m} }

type collector struct{ m *Member }

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		liveSeries, clockSeries, missingSeries, lagSeries, stuckSeries, damagedSeries, differSeries, damagesSeries,
		verifiedSeries, quarantineSeries,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It calls no other member.
func (c collector) Collect(to chan<- prometheus.Metric) {
	observed := c.m.Observation()
	if observed == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.collectMembers(gauge)
	gauge(clockSeries, observed.ClocksApart.Seconds())
	missing, lag, stuck := map[string]int{}, map[string]uint64{}, 0
	for i := range observed.Streams {
		s := &observed.Streams[i]
		if s.Problem != "" {
			stuck++
		}
		for _, r := range s.Replicas {
			lag[r.Server] = max(lag[r.Server], r.Lag)
			if r.Problem != "" {
				missing[r.Server]++
			}
		}
	}
	for server, behind := range lag { // it has every server
		gauge(missingSeries, float64(missing[server]), server)
		gauge(lagSeries, float64(behind), server)
	}
	gauge(stuckSeries, float64(stuck))
	c.collectFiles(observed.Members[c.m.Self()], gauge, to)
}

// collectMembers reports which members have a lease. A member without a lease of its own does not know the
// others' leases, but it certainly knows that it has none.
func (c collector) collectMembers(gauge func(*prometheus.Desc, float64, ...string)) {
	joined := c.m.membership.Load()
	for _, name := range c.m.names {
		_, live := joined.Find(name)
		if name == c.m.opts.Self {
			live = joined.Alive()
		}
		value := 0.0
		if live {
			value = 1
		}
		gauge(liveSeries, value, name)
	}
}

func (c collector) collectFiles(own *Health, gauge func(*prometheus.Desc, float64, ...string),
	to chan<- prometheus.Metric,
) {
	if own == nil {
		return
	}
	damaged, differing, damages, oldest := 0, 0, 0, int64(0)
	for i := range own.Parts {
		p := &own.Parts[i]
		damages += p.Damages
		if !p.Damaged.IsZero() {
			damaged++
		}
		if p.Differs != "" {
			differing++
		}
		if at := p.Verified.Unix(); !p.Verified.IsZero() && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	gauge(damagedSeries, float64(damaged))
	gauge(differSeries, float64(differing))
	gauge(quarantineSeries, float64(own.QuarantineBytes))
	if oldest > 0 {
		gauge(verifiedSeries, float64(oldest))
	}
	to <- prometheus.MustNewConstMetric(damagesSeries, prometheus.CounterValue, float64(damages))
}
