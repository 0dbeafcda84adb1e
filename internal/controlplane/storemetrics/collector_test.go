package storemetrics

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/etcd"
)

type store etcd.Space

func (s store) Space() etcd.Space  { return etcd.Space(s) }
func (s store) RequestCompaction() {}

func TestCollector(t *testing.T) {
	t.Parallel()
	usage := func() map[string]budget.Usage { return map[string]budget.Usage{"acme": {Objects: 4, Bytes: 900}} }
	for name, tc := range map[string]struct {
		space store
		want  map[string]float64
	}{
		"space left": {store{File: 20 << 20, Used: 10 << 20, Quota: 100 << 20}, map[string]float64{
			"freshet_etcd_size_bytes file": 20 << 20, "freshet_etcd_size_bytes used": 10 << 20,
			"freshet_etcd_quota_bytes": 100 << 20, "freshet_etcd_refusing": 0,
			"freshet_resource_objects acme": 4, "freshet_resource_bytes acme": 900,
		}},
		"full": {store{File: 7, Used: 7, Exhausted: true}, map[string]float64{
			"freshet_etcd_size_bytes file": 7, "freshet_etcd_size_bytes used": 7,
			"freshet_etcd_quota_bytes": 0, "freshet_etcd_refusing": 1,
			"freshet_resource_objects acme": 4, "freshet_resource_bytes acme": 900,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(NewCollector(tc.space, usage))
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, family := range families {
				for _, metric := range family.GetMetric() {
					name := family.GetName()
					for _, label := range metric.GetLabel() {
						name += " " + label.GetValue()
					}
					got[name] = metric.GetGauge().GetValue()
				}
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
