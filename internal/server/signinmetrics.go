package server

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// signInCounts counts sign-ins by method and outcome.
type signInCounts struct {
	mu     sync.Mutex // protects counts
	counts map[[2]string]int64
}

func (c *signInCounts) count(method, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[[2]string]int64)
	}
	c.counts[[2]string{method, outcome}]++
}

// signInMetrics are the metrics of sign-ins and sessions.
type signInMetrics struct{ signIns, sessions *prometheus.Desc }

func newSignInMetrics() signInMetrics {
	return signInMetrics{
		signIns: prometheus.NewDesc("freshet_sign_ins_total", "Sign-ins of people, by method and outcome.",
			[]string{"method", "outcome"}, nil),
		sessions: prometheus.NewDesc("freshet_sessions", "Sessions of signed-in users.", nil, nil),
	}
}

func (m *signInMetrics) collect(ch chan<- prometheus.Metric, counts *signInCounts, sessions int) {
	counts.mu.Lock()
	defer counts.mu.Unlock()
	for labels, n := range counts.counts {
		ch <- prometheus.MustNewConstMetric(m.signIns, prometheus.CounterValue, float64(n), labels[0], labels[1])
	}
	ch <- prometheus.MustNewConstMetric(m.sessions, prometheus.GaugeValue, float64(sessions))
}
