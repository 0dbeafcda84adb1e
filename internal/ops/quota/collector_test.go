package quota_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/ops/quota"
)

func TestCollector(t *testing.T) {
	t.Parallel()
	book := quota.New(quota.Limits{quota.Topics: 2}, nil)
	cluster := open(book.Organization("acme"), "prod", quota.Limits{})
	if err := cluster.create(t.Context(), quota.Topics, 2); err != nil {
		t.Fatal(err)
	}
	if err := cluster.create(t.Context(), quota.Topics, 1); err == nil {
		t.Fatal("third topic is created, want an error")
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(quota.NewCollector(book))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			got[family.GetName()+" "+metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] =
				metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"freshet_quota_used acme topics": 2, "freshet_quota_limit acme topics": 2,
		"freshet_quota_refusals_total acme topics": 1, "freshet_quota_refusals_total acme clusters": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s: got %v (exists: %v), want %v", name, value, ok, want)
		}
	}
	for _, name := range []string{"freshet_quota_limit acme clusters", "freshet_quota_used acme instances"} {
		if value, ok := got[name]; ok {
			t.Errorf("%s is %v, want no series", name, value)
		}
	}
}
