// Package clustermetrics collects the metrics of running clusters at each scrape: their health,
// messages, registries and consumer groups. Other metrics are beside their owners, for example
// in surfaces/kafkaapi and identity/identitymetrics. It has no locks.
package clustermetrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/dataplane"
	"freshet/internal/registry/schemas"
	"freshet/internal/storage/engine"
)

// Plane contains the running clusters, and those that cannot be served.
type Plane interface {
	Clusters() []*dataplane.Cluster
	Failing() []dataplane.Failing
}

// Collector collects the metrics of all clusters of a plane.
type Collector struct {
	plane    Plane
	byTopic  func() bool
	clusters *prometheus.Desc
	problem  *prometheus.Desc
	subjects *prometheus.Desc
	versions *prometheus.Desc
	schemas  *prometheus.Desc
	position *prometheus.Desc
	messages *messagingMetrics
	groups   groupMetrics
}

// NewCollector returns a collector. byTopic reports at each scrape whether to collect series
// for each topic and partition.
func NewCollector(plane Plane, byTopic func() bool) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("freshet_"+name, help, labels, nil)
	}
	return &Collector{
		plane:    plane,
		byTopic:  byTopic,
		clusters: desc("clusters", "Clusters that should run, by health.", "healthy"),
		problem: desc("cluster_problem", "1 for a cluster that this server cannot serve or change, by reason.",
			"organization", "cluster", "reason"),
		subjects: desc("registry_subjects", "Subjects of a cluster's schema registry, by state.", "organization",
			"cluster", "state"),
		versions: desc("registry_versions", "Versions of subjects, by type and state.", "organization", "cluster",
			"type", "state"),
		schemas: desc("registry_schemas", "Distinct schemas, by type.", "organization", "cluster", "type"),
		position: desc("registry_journal_position", "Last applied record of the registry's journal.",
			"organization", "cluster"),
		messages: newMessagingMetrics(),
		groups:   newGroupMetrics(),
	}
}

// Describe implements prometheus.Collector. It sends no descriptors, because the series
// depend on the clusters. So the collector is unchecked.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	failing := map[string]bool{}
	for _, f := range c.plane.Failing() {
		failing[f.UID] = true
		gauge(c.problem, 1, f.Organization, f.Name, reasonOf(f.Err))
	}
	healthy := 0
	for _, cluster := range c.plane.Clusters() {
		if !failing[cluster.UID] {
			healthy++
			if err := cluster.LostJournals(); err != nil {
				gauge(c.problem, 1, cluster.Organization, cluster.Name, reasonOf(err))
			}
		}
		c.collectRegistry(cluster, gauge)
		c.messages.collect(ch, cluster, c.byTopic())
		c.groups.collect(ch, cluster, c.byTopic())
	}
	gauge(c.clusters, float64(healthy), "true")
	gauge(c.clusters, float64(len(failing)), "false")
}

// reasonOf returns the reason of a cluster's problem. It is one of few values, because it is a label.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, engine.ErrLogLost):
		return "LogLost"
	case errors.Is(err, engine.ErrJournalLost):
		return "JournalLost"
	case errors.Is(err, engine.ErrNewerFormat):
		return "NewerFormat"
	case errors.Is(err, engine.ErrCorrupt):
		return "Damaged"
	default:
		return "Other"
	}
}

func (c *Collector) collectRegistry(cluster *dataplane.Cluster, gauge func(*prometheus.Desc, float64, ...string)) {
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
