package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/dataplane"
	"freshet/internal/schemas"
)

// figures are what the running parts know about themselves, asked for when
// somebody looks at the metrics.
type figures struct {
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
}

func newFigures(s *server) *figures {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return &figures{
		server:   s,
		clusters: desc("clusters", "Clusters that are open, by whether they keep their promises.", "healthy"),
		subjects: desc("registry_subjects", "Subjects of a cluster's schema registry, by state.", "organization", "cluster", "state"),
		versions: desc("registry_versions", "Versions of subjects, by type and state.", "organization", "cluster", "type", "state"),
		schemas:  desc("registry_schemas", "Distinct schemas, by type.", "organization", "cluster", "type"),
		position: desc("registry_journal_position", "Last record of the registry's journal that is applied.", "organization", "cluster"),
		accounts: desc("accounts", "Service accounts that can sign in."),
		keys:     desc("api_keys", "API keys that are known."),
		tokens:   desc("verified_tokens", "Tokens whose signature need not be checked again."),
		audited:  desc("audit_records_total", "Audit records, by what became of them.", "outcome"),
	}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(f, ch) }

// Collect implements prometheus.Collector.
func (f *figures) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	healthy, sick := 0, 0
	for _, c := range f.server.plane.Clusters() {
		if c.Health() == nil {
			healthy++
		} else {
			sick++
		}
		f.collectRegistry(c, gauge)
	}
	gauge(f.clusters, float64(healthy), "true")
	gauge(f.clusters, float64(sick), "false")
	accounts, keys := f.server.people.directory.Len()
	gauge(f.accounts, float64(accounts))
	gauge(f.keys, float64(keys))
	gauge(f.tokens, float64(f.server.people.verifier.Cached()))
	if f.server.trail != nil {
		stats := f.server.trail.Stats()
		for outcome, n := range map[string]int64{"written": stats.Written, "dropped": stats.Dropped, "failed": stats.Failed} {
			ch <- prometheus.MustNewConstMetric(f.audited, prometheus.CounterValue, float64(n), outcome)
		}
	}
}

func (f *figures) collectRegistry(c *dataplane.Cluster, gauge func(*prometheus.Desc, float64, ...string)) {
	counts := c.Registry.Counts()
	gauge(f.subjects, float64(counts.Subjects), c.Organization, c.Name, "active")
	gauge(f.subjects, float64(counts.DeletedSubjects), c.Organization, c.Name, "deleted")
	for kind := schemas.Avro; kind <= schemas.Protobuf; kind++ {
		gauge(f.schemas, float64(counts.Schemas[kind]), c.Organization, c.Name, kind.String())
		gauge(f.versions, float64(counts.ActiveVersions[kind]), c.Organization, c.Name, kind.String(), "active")
		gauge(f.versions, float64(counts.DeletedVersions[kind]), c.Organization, c.Name, kind.String(), "deleted")
	}
	gauge(f.position, float64(c.Registry.Position()), c.Organization, c.Name)
}
