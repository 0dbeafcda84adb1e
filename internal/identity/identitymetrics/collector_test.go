package identitymetrics

import (
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

type counts struct{ accounts, keys, sessions, cached int }

func (c counts) Len() (accounts, keys int) { return c.accounts, c.keys }
func (c counts) Sessions() int             { return c.sessions }
func (c counts) Cached() int               { return c.cached }

func TestCollector(t *testing.T) {
	t.Parallel()
	var signIns SignIns
	have := counts{accounts: 3, keys: 5, sessions: 2, cached: 7}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(have, have, &signIns))
	signIns.Count("passkey", "ok")
	signIns.Count("passkey", "ok")
	signIns.Count("link", "expired")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += fmt.Sprintf(" %s=%s", label.GetName(), label.GetValue())
			}
			got[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"freshet_accounts": 3, "freshet_api_keys": 5, "freshet_verified_tokens": 7, "freshet_sessions": 2,
		"freshet_sign_ins_total method=passkey outcome=ok":   2,
		"freshet_sign_ins_total method=link outcome=expired": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
