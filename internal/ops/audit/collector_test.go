package audit_test

import (
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/ops/audit"
)

func TestCollector(t *testing.T) {
	t.Parallel()
	var off *audit.Trail
	off.Record(audit.Record{}) // drops the record
	trail, err := audit.OpenTrail(audit.Options{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(trail)
	for range 3 {
		trail.Record(audit.Record{Decision: audit.Allowed, Principal: "a"})
	}
	if err := trail.Close(); err != nil { // waits until the records are written
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "freshet_audit_records_total" {
		t.Fatalf("got %v, %v; want freshet_audit_records_total", families, err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
	}
	if len(got) != 4 || got["written"] != 3 || got["dropped"] != 0 {
		t.Errorf("got %v, want 3 written records and 4 outcomes", got)
	}
}
