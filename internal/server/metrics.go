package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/dataplane"
	"freshet/internal/registry/schemas"
)

// collector collects the metrics of the running parts at each scrape.
type collector struct {
	server   *server
	clusters *prometheus.Desc
	subjects *prometheus.Desc
	versions *prometheus.Desc
	schemas  *prometheus.Desc
	position *prometheus.Desc
	accounts *prometheus.Desc
	keys     *prometheus.Desc
	tokens   *prometheus.Desc
	audited  *prometheus.Desc
	backups  *prometheus.Desc
	backedUp *prometheus.Desc
	messages *messagingMetrics
	quotas   quotaMetrics
	store    storeMetrics
	kafka    kafkaMetrics
	signIns  signInMetrics
}

func newCollector(s *server) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return &collector{
		server:   s,
		clusters: desc("clusters", "Open clusters, by health.", "healthy"),
		subjects: desc("registry_subjects", "Subjects of a cluster's schema registry, by state.", "organization",
			"cluster", "state"),
		versions: desc("registry_versions", "Versions of subjects, by type and state.", "organization", "cluster",
			"type", "state"),
		schemas: desc("registry_schemas", "Distinct schemas, by type.", "organization", "cluster", "type"),
		position: desc("registry_journal_position", "Last applied record of the registry's journal.",
			"organization", "cluster"),
		accounts: desc("accounts", "Service accounts."),
		keys:     desc("api_keys", "API keys."),
		tokens:   desc("verified_tokens", "Verified tokens in the cache."),
		audited:  desc("audit_records_total", "Audit records, by outcome.", "outcome"),
		backups:  desc("backups_total", "Scheduled backups, by outcome.", "outcome"),
		backedUp: desc("backup_last_timestamp_seconds", "Start time of the newest scheduled backup."),
		messages: newMessagingMetrics(),
		quotas:   newQuotaMetrics(),
		store:    newStoreMetrics(),
		kafka:    newKafkaMetrics(),
		signIns:  newSignInMetrics(),
	}
}

// Describe implements prometheus.Collector. It sends no descriptors, because the series
// depend on the clusters. So the collector is unchecked.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	healthy, failing := 0, 0
	for _, cluster := range c.server.plane.Clusters() {
		if cluster.Health() == nil {
			healthy++
		} else {
			failing++
		}
		c.collectRegistry(cluster, gauge)
		c.messages.collect(ch, cluster, c.server.settings().Metrics.Topics)
		c.kafka.collectGroups(ch, cluster, c.server.settings().Metrics.Topics)
	}
	c.kafka.collect(ch, c.server.kafka.server)
	gauge(c.clusters, float64(healthy), "true")
	gauge(c.clusters, float64(failing), "false")
	c.quotas.collect(ch, c.server.quotas)
	c.signIns.collect(ch, &c.server.signIns, c.server.identity.directory.Sessions())
	accounts, keys := c.server.identity.directory.Len()
	gauge(c.accounts, float64(accounts))
	gauge(c.keys, float64(keys))
	gauge(c.tokens, float64(c.server.identity.verifier.Cached()))
	if b := c.server.backups; b.cfg.Directory != "" {
		gauge(c.backedUp, float64(b.last.Load()))
		for outcome, n := range map[string]int64{"done": b.done.Load(), "failed": b.failed.Load()} {
			ch <- prometheus.MustNewConstMetric(c.backups, prometheus.CounterValue, float64(n), outcome)
		}
	}
	c.store.collect(ch, c.server.store.Space(), c.server.api.Usage())
	if c.server.audit != nil {
		stats := c.server.audit.Stats()
		for outcome, n := range map[string]int64{
			"written": stats.Written, "dropped": stats.Dropped,
			"failed": stats.Failed, "suppressed": stats.Suppressed,
		} {
			ch <- prometheus.MustNewConstMetric(c.audited, prometheus.CounterValue, float64(n), outcome)
		}
	}
}

func (c *collector) collectRegistry(cluster *dataplane.Cluster, gauge func(*prometheus.Desc, float64, ...string)) {
	counts := cluster.Registry.Counts()
	gauge(c.subjects, float64(counts.Subjects), cluster.Organization, cluster.Name, "active")
	gauge(c.subjects, float64(counts.DeletedSubjects), cluster.Organization, cluster.Name, "deleted")
	for kind := schemas.Avro; kind <= schemas.Protobuf; kind++ {
		gauge(c.schemas, float64(counts.Schemas[kind]), cluster.Organization, cluster.Name, kind.String())
		gauge(c.versions, float64(counts.ActiveVersions[kind]), cluster.Organization, cluster.Name,
			kind.String(), "active")
		gauge(c.versions, float64(counts.DeletedVersions[kind]), cluster.Organization, cluster.Name,
			kind.String(), "deleted")
	}
	gauge(c.position, float64(cluster.Registry.Position()), cluster.Organization, cluster.Name)
}
