package clustermetrics

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/registry/schemas"
	"freshet/internal/storage/engine"
)

// gather returns the value of every series, by its name and the values of its labels.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var name strings.Builder
			name.WriteString(strings.TrimPrefix(family.GetName(), "freshet_"))
			for _, label := range metric.GetLabel() { // sorted by name
				name.WriteString(" " + label.GetValue())
			}
			got[name.String()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return got
}

// TestCollector collects the metrics of a cluster with messages, a schema and a consumer group.
func TestCollector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plane, err := dataplane.Open(dataplane.Options{
		Dir: dir, Domain: "freshet.localhost", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	err = plane.Provision(t.Context(), provision.Spec{
		UID: "u", Organization: "acme", Instance: "i", Name: "prod", Host: "prod.acme.freshet.localhost",
		Engine: "pebble", Stream: true,
	}, func(provision.Part) {})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := plane.FindNamed("acme", "prod")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := names.ParseTopic("persistent://public/default/orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Broker.Catalogue.CreateTopic(t.Context(), topic, messaging.NewTopic{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := cluster.Broker.Producer.Produce(t.Context(), topic,
			&messaging.Message{SchemaVersion: messaging.NoSchema, Payload: []byte("four")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cluster.Registry.Register(t.Context(), "orders-value",
		&schemas.Draft{Type: schemas.Avro, Text: `"string"`}); err != nil {
		t.Fatal(err)
	}
	commit(t, cluster, topic)
	cannotOpen(t, plane, dir)
	byTopic := false
	collector := NewCollector(plane, func() bool { return byTopic })
	got := gather(t, collector)
	for name, want := range map[string]float64{
		"clusters true": 1, "clusters false": 1,
		"cluster_problem broken acme Other":  1,
		"registry_subjects prod acme active": 1, "registry_subjects prod acme deleted": 0,
		"registry_schemas prod acme AVRO":                            1,
		"messaging_tenants prod acme":                                1,
		"messaging_topics prod acme":                                 1,
		"damaged_messages_total prod acme":                           0,
		"groups false prod acme classic":                             1,
		"groups_left_out prod acme":                                  0,
		"group_members prod billing acme public":                     0,
		"group_lag_messages prod billing acme public orders":         2,
		"namespace_produced_messages_total prod public/default acme": 3,
		"namespace_produced_bytes_total prod public/default acme":    12,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s: got %v (exists: %v), want %v", name, value, ok, want)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "topic_") || strings.HasPrefix(name, "group_partition_") {
			t.Errorf("series %s of a topic, although byTopic is false", name)
		}
	}
	byTopic = true
	got = gather(t, collector)
	for name, want := range map[string]float64{
		"topic_produced_messages_total prod public/default acme orders":  3,
		"group_partition_lag_messages prod billing acme 0 public orders": 2,
		"messaging_topics_left_out prod acme":                            0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("by topic, %s: got %v (exists: %v), want %v", name, value, ok, want)
		}
	}
}

// cannotOpen provisions a cluster that cannot be opened, because its directory is a file.
func cannotOpen(t *testing.T, plane *dataplane.Plane, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := plane.Provision(t.Context(), provision.Spec{
		UID: "broken", Organization: "acme", Instance: "i", Name: "broken", Host: "broken.acme.freshet.localhost",
		Engine: "pebble",
	}, func(provision.Part) {})
	if err == nil {
		t.Fatal("provisioning a cluster whose directory is a file: got no error")
	}
}

// TestReasons checks that every error that clients may see has a reason of its own.
func TestReasons(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		engine.ErrLogLost: "LogLost", engine.ErrJournalLost: "JournalLost", engine.ErrNewerFormat: "NewerFormat",
		engine.ErrCorrupt: "Damaged", engine.ErrClosed: "Other",
	} {
		if got := reasonOf(fmt.Errorf("cluster: %w", err)); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

// commit commits offset 1 of a topic for the consumer group billing.
func commit(t *testing.T, cluster *dataplane.Cluster, topic names.Topic) {
	t.Helper()
	coordinator, err := cluster.Groups(t.Context(), time.Second, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	id, ok := cluster.Broker.Catalogue.IDOf(t.Context(), topic)
	if !ok {
		t.Fatal("topic has no id")
	}
	err = coordinator.Commit(t.Context(), groups.Key{Tenant: "public", Group: "billing"}, &groups.CommitRequest{
		Generation: -1,
		Offsets:    map[groups.Partition]groups.Offset{{Topic: id}: {Offset: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
