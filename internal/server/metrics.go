package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/dataplane"
	"freshet/internal/registry/schemas"
)

// collector is what the running parts know about themselves, asked for when
// somebody looks at the metrics.
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
	stream   streamMetrics
	signIns  signInMetrics
}

func newCollector(s *server) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return &collector{
		server:   s,
		clusters: desc("clusters", "Clusters that are open, by whether they are healthy.", "healthy"),
		subjects: desc("registry_subjects", "Subjects of a cluster's schema registry, by state.", "organization",
			"cluster", "state"),
		versions: desc("registry_versions", "Versions of subjects, by type and state.", "organization", "cluster",
			"type", "state"),
		schemas: desc("registry_schemas", "Distinct schemas, by type.", "organization", "cluster", "type"),
		position: desc("registry_journal_position", "Last record of the registry's journal that is applied.",
			"organization", "cluster"),
		accounts: desc("accounts", "Service accounts that can sign in."),
		keys:     desc("api_keys", "API keys that are known."),
		tokens:   desc("verified_tokens", "Tokens whose signature need not be checked again."),
		audited:  desc("audit_records_total", "Audit records, by what became of them.", "outcome"),
		backups:  desc("backups_total", "Backups on schedule, by what became of them.", "outcome"),
		backedUp: desc("backup_last_timestamp_seconds", "When the newest backup on schedule began."),
		messages: newMessagingMetrics(),
		quotas:   newQuotaMetrics(),
		store:    newStoreMetrics(),
		stream:   newStreamMetrics(),
		signIns:  newSignInMetrics(),
	}
}

// Describe implements prometheus.Collector. It names nothing: which series there
// are depends on the clusters, and to find out would cost a scrape.
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
		c.stream.collectGroups(ch, cluster, c.server.settings().Metrics.Topics)
	}
	c.stream.collect(ch, c.server.stream.server)
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
	c.store.collect(ch, c.server.store.Room(), c.server.api.Usage())
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
