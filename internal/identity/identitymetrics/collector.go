// Package identitymetrics collects the metrics of identities at each scrape: accounts, keys,
// tokens, sessions and sign-ins.
//
// # Locks
//
//	lock         protects
//	SignIns.mu   the counts of sign-ins
package identitymetrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// SignIns counts sign-ins by method and outcome. The zero value is ready to use.
type SignIns struct {
	mu     sync.Mutex // protects counts
	counts map[[2]string]int64
}

// Count counts a sign-in.
func (c *SignIns) Count(method, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[[2]string]int64)
	}
	c.counts[[2]string{method, outcome}]++
}

// Directory contains the accounts, keys and sessions; identity.Directory implements it.
type Directory interface {
	Len() (accounts, keys int)
	Sessions() int
}

// Cache contains the verified tokens; identity.Verifier implements it.
type Cache interface {
	Cached() int
}

// Collector collects the metrics of identities.
type Collector struct {
	directory Directory
	tokens    Cache
	signIns   *SignIns

	accountsDesc, keysDesc, tokensDesc, signInsDesc, sessionsDesc *prometheus.Desc
}

// NewCollector returns a collector.
func NewCollector(directory Directory, tokens Cache, signIns *SignIns) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return &Collector{
		directory: directory, tokens: tokens, signIns: signIns,
		accountsDesc: desc("accounts", "Service accounts."),
		keysDesc:     desc("api_keys", "API keys."),
		tokensDesc:   desc("verified_tokens", "Verified tokens in the cache."),
		signInsDesc:  desc("sign_ins_total", "Sign-ins of people, by method and outcome.", "method", "outcome"),
		sessionsDesc: desc("sessions", "Sessions of signed-in users."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.accountsDesc, c.keysDesc, c.tokensDesc, c.signInsDesc, c.sessionsDesc,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	accounts, keys := c.directory.Len()
	gauge(c.accountsDesc, accounts)
	gauge(c.keysDesc, keys)
	gauge(c.tokensDesc, c.tokens.Cached())
	gauge(c.sessionsDesc, c.directory.Sessions())
	c.signIns.mu.Lock()
	defer c.signIns.mu.Unlock()
	for labels, n := range c.signIns.counts {
		ch <- prometheus.MustNewConstMetric(c.signInsDesc, prometheus.CounterValue, float64(n), labels[0], labels[1])
	}
}
