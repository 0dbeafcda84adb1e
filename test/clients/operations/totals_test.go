package operations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// totals are the results of the first query of panels with the series of three healthy members, at half past
// zero. What every member reports must not be counted three times.
var totals = map[string]promtoolSample{
	"Members":                {"{}", 3},
	"Missing replicas":       {"{}", 0},
	"Unhealthy clusters":     {"{}", 0},
	"Topics":                 {"{}", 7},
	"Backlog":                {"{}", 30}, // each member reports that of the topics that it owns
	"Newest backup":          {"{}", 1800},
	"Difference of clocks":   {"{}", 0},
	"Messages per second":    {`{cluster="prod",organization="acme"}`, 3},
	"Lag of consumer groups": {"{" + ofBilling + "}", 12},
	"Quotas":                 {`{organization="acme",resource="topics"}`, 0.2},
	"Accounts and keys":      {"{}", 4},
	"Schemas":                {`{cluster="prod",organization="acme"}`, 5},
}

// ofOne are the results that differ when the dashboard of one server shows one of the members.
var ofOne = map[string]promtoolSample{
	"Backlog":             {"{}", 10},
	"Messages per second": {`{cluster="prod",organization="acme"}`, 1},
}

// TestDashboardTotals checks with the series of three members that every panel has data, can be evaluated, and
// shows the right totals.
func TestDashboardTotals(t *testing.T) {
	t.Parallel()
	ofServer := maps.Clone(totals)
	maps.Copy(ofServer, ofOne)
	for name, want := range map[string]map[string]promtoolSample{"server": ofServer, "ensemble": totals} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var checks []promtoolCheck
			panels, _ := dashboard(t, name)
			shown := map[string]bool{}
			for _, p := range panels {
				for i, target := range p.Targets {
					expr := variables.Replace(strings.ReplaceAll(target.Expr, "$instance", "a"))
					expr = strings.ReplaceAll(expr, "[1m]", "[5m]") // the series have a sample a minute
					sample, known := want[p.Title]
					if known = known && i == 0 && !shown[p.Title]; known {
						shown[p.Title] = true
						checks = append(checks, promtoolCheck{expr, "30m", []promtoolSample{sample}})
						continue
					}
					checks = append(checks, promtoolCheck{
						fmt.Sprintf("count(%s) > bool 0", expr), "30m", []promtoolSample{{"{}", 1}},
					})
				}
			}
			for _, title := range slices.Sorted(maps.Keys(want)) {
				if !shown[title] && name == "ensemble" {
					t.Errorf("dashboard has no panel %q", title)
				}
			}
			promtoolTests(t, []promtoolTest{{name, "1m", healthyMembers().input(), checks}})
		})
	}
}
