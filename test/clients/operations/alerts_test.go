package operations

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// scenario changes series of healthy members, and lists the alerts that fire then: their labels, without
// those that all alerts have.
type scenario struct {
	change allSeries
	fire   map[string]string
}

// problem returns the series of a cluster that a member cannot serve.
func problem(member, reason string) string {
	return on(member, "freshet_cluster_problem", prod+`,reason="`+reason+`"`)
}

// scenarios are cases in which alerts fire. The name is that of the alert, with what is special about the case.
var scenarios = map[string]scenario{
	"FreshetDown": {
		allSeries{on("c", "up", ""): then(1, 0)}, map[string]string{"FreshetDown": `instance="c"`},
	},
	"FreshetAbsent": {
		allSeries{
			on("a", "up", ""): disappears(1), on("b", "up", ""): disappears(1), on("c", "up", ""): disappears(1),
		}, map[string]string{"FreshetAbsent": ""},
	},
	"FreshetClusterUnhealthy": {
		allSeries{problem("b", "Damaged"): appears(1), problem("c", "Damaged"): appears(1)},
		map[string]string{"FreshetClusterUnhealthy": prod + `,reason="Damaged"`},
	},
	"FreshetDiskLow": {
		allSeries{on("b", "freshet_store_disk_available_bytes", prod): then(10e9, 1e9)},
		map[string]string{"FreshetDiskLow": `instance="b"`},
	},
	"FreshetStoreRefusing": {
		allSeries{
			on("a", "freshet_etcd_refusing", ""): then(0, 1), on("b", "freshet_etcd_refusing", ""): then(0, 1),
		}, map[string]string{"FreshetStoreRefusing": ""},
	},
	"FreshetStoreNearlyFull": {
		allSeries{
			on("a", "freshet_etcd_size_bytes", `of="used"`): then(200, 800),
			on("b", "freshet_etcd_size_bytes", `of="used"`): then(200, 790),
		}, map[string]string{"FreshetStoreNearlyFull": ""},
	},
	"FreshetQuotaNearlyUsed": {
		allSeries{
			on("a", "freshet_quota_used", `organization="acme",resource="topics"`): then(20, 95),
			on("b", "freshet_quota_used", `organization="acme",resource="topics"`): then(20, 95),
			on("c", "freshet_quota_used", `organization="acme",resource="topics"`): then(20, 95),
		}, map[string]string{"FreshetQuotaNearlyUsed": `organization="acme",resource="topics"`},
	},
	"FreshetDamage": {
		allSeries{on("b", "freshet_damaged_messages_total", prod): then(1, 2)},
		map[string]string{"FreshetDamage": prod},
	},
	"FreshetConsumersBehind": {
		allSeries{
			on("b", "freshet_namespace_oldest_unacknowledged_age_seconds", ofDefault): then(30, 4000),
			on("c", "freshet_namespace_oldest_unacknowledged_age_seconds", ofDefault): then(30, 5000),
		}, map[string]string{"FreshetConsumersBehind": ofDefault},
	},
	"FreshetDeadLetters": {
		allSeries{
			on("a", "freshet_namespace_dead_letters_total", ofDefault): grows(1),
			on("b", "freshet_namespace_dead_letters_total", ofDefault): grows(1),
		}, map[string]string{"FreshetDeadLetters": ofDefault},
	},
	"FreshetGroupLag": {
		allSeries{
			on("a", "freshet_group_lag_messages", ofBilling): then(12, 2e5),
		}, map[string]string{"FreshetGroupLag": ofBilling},
	},
	"FreshetErrors": {
		allSeries{on("a", "freshet_http_requests_total", `surface="messages",class="5xx"`): grows(60)},
		map[string]string{"FreshetErrors": `surface="messages"`},
	},
	"FreshetAuditIncomplete": {
		allSeries{on("c", "freshet_audit_records_total", `outcome="dropped"`): grows(60)},
		map[string]string{"FreshetAuditIncomplete": `instance="c"`},
	},
	"FreshetBackupFailed": {
		allSeries{on("a", "freshet_backups_total", `outcome="failed"`): then(0, 1)},
		map[string]string{"FreshetBackupFailed": ""},
	},
	"FreshetBackupOld": {
		allSeries{on("a", "freshet_backup_last_timestamp_seconds", ""): then(0, -2e5)},
		map[string]string{"FreshetBackupOld": ""},
	},
	"FreshetMemberDown": {
		allSeries{
			on("a", "freshet_ensemble_member_live", `member="c"`): then(1, 0),
			on("b", "freshet_ensemble_member_live", `member="c"`): then(1, 0),
			on("c", "freshet_ensemble_member_live", `member="c"`): then(1, 0),
		}, map[string]string{"FreshetMemberDown": `member="c"`},
	},
	"FreshetMemberDown, stopped": {
		allSeries{
			on("a", "freshet_ensemble_member_live", `member="c"`): then(1, 0),
			on("b", "freshet_ensemble_member_live", `member="c"`): then(1, 0),
			on("c", "freshet_ensemble_member_live", `member="c"`): disappears(1),
		}, map[string]string{"FreshetMemberDown": `member="c"`},
	},
	"FreshetLogLost": {
		allSeries{problem("a", "LogLost"): appears(1), problem("b", "LogLost"): appears(1)},
		map[string]string{"FreshetLogLost": prod},
	},
	"FreshetJournalLost": {
		allSeries{
			problem("a", "JournalLost"): appears(1), problem("b", "JournalLost"): appears(1),
			problem("c", "JournalLost"): appears(1),
		}, map[string]string{"FreshetJournalLost": prod},
	},
	"FreshetLogWithoutMajority": {
		allSeries{
			on("a", "freshet_log_streams_without_majority", ""): then(0, 2),
			on("b", "freshet_log_streams_without_majority", ""): then(0, 2),
			on("c", "freshet_log_streams_without_majority", ""): then(0, 1),
		}, map[string]string{"FreshetLogWithoutMajority": ""},
	},
	"FreshetLogReplicasMissing": {
		allSeries{
			on("a", "freshet_log_replicas_missing", `member="c"`): then(0, 4),
			on("b", "freshet_log_replicas_missing", `member="c"`): then(0, 4),
		}, map[string]string{"FreshetLogReplicasMissing": `member="c"`},
	},
	"FreshetFilesDamaged": {
		allSeries{on("b", "freshet_integrity_damaged_parts", ""): then(0, 1)},
		map[string]string{"FreshetFilesDamaged": `instance="b"`},
	},
	"FreshetFilesWereDamaged": {
		allSeries{on("b", "freshet_integrity_damages_total", ""): then(2, 3)},
		map[string]string{"FreshetFilesWereDamaged": `instance="b"`},
	},
	"FreshetCopiesDiffer": {
		allSeries{on("b", "freshet_integrity_differing_parts", ""): then(0, 1)},
		map[string]string{"FreshetCopiesDiffer": `instance="b"`},
	},
	"FreshetQuarantineLarge": {
		allSeries{on("b", "freshet_integrity_quarantine_bytes", ""): then(0, 6e9)},
		map[string]string{"FreshetQuarantineLarge": `instance="b"`},
	},
	"FreshetClocksDiffer": {
		allSeries{
			on("a", "freshet_ensemble_clock_difference_seconds", ""): then(0, 5),
			on("b", "freshet_ensemble_clock_difference_seconds", ""): then(0, 5),
			on("c", "freshet_ensemble_clock_difference_seconds", ""): then(0, 5),
		}, map[string]string{"FreshetClocksDiffer": ""},
	},
	"FreshetVersionsDiffer": {
		allSeries{
			on("c", "freshet_build_info", `version="0.1.0"`): disappears(1),
			on("c", "freshet_build_info", `version="0.2.0"`): appears(1),
		}, map[string]string{"FreshetVersionsDiffer": ""},
	},
	"FreshetNATSUnhealthy": {
		allSeries{on("b", "freshet_nats_healthy", ""): then(1, 0)},
		map[string]string{"FreshetNATSUnhealthy": `instance="b"`},
	},
	"FreshetNATSWithoutLeader": {
		allSeries{on("b", "freshet_nats_streams_without_leader", ""): then(0, 3)},
		map[string]string{"FreshetNATSWithoutLeader": `instance="b"`},
	},
	"FreshetNATSPeersMissing": {
		allSeries{on("b", "freshet_nats_peers", ""): then(2, 1)},
		map[string]string{"FreshetNATSPeersMissing": `instance="b"`},
	},
	"FreshetLogNearlyFull": {
		allSeries{on("b", "freshet_nats_stored_bytes", ""): then(100, 900)},
		map[string]string{"FreshetLogNearlyFull": `instance="b"`},
	},
	"FreshetLogSlow": {
		allSeries{on("b", "freshet_log_asked_appends_total", ""): grows(120)},
		map[string]string{"FreshetLogSlow": `instance="b"`},
	},
}

// quiet are cases in which no alert fires.
var quiet = map[string]allSeries{
	"healthy members":               {},
	"one member sees another down":  {on("a", "freshet_ensemble_member_live", `member="c"`): then(1, 0)},
	"external etcd without a quota": {on("a", "freshet_etcd_quota_bytes", ""): then(1000, 0)},
	"log without a limit":           {on("a", "freshet_nats_stored_limit_bytes", ""): then(1000, 0)},
	"another member takes backups": {
		on("a", "freshet_backup_last_timestamp_seconds", ""): then(0, -2e5),
		on("b", "freshet_backup_last_timestamp_seconds", ""): then(-1e9, 3600),
	},
	"a member restarts and its counters begin again": {
		on("b", "freshet_damaged_messages_total", prod):      then(1, 0),
		on("b", "freshet_integrity_damages_total", ""):       then(2, 2),
		on("b", "freshet_log_asked_appends_total", ""):       then(0, 0),
		on("b", "freshet_backups_total", `outcome="failed"`): then(0, 0),
	},
	"below the thresholds": {
		on("a", "freshet_store_disk_available_bytes", prod):                       then(10e9, 2.1e9),
		on("a", "freshet_etcd_size_bytes", `of="used"`):                           then(200, 740),
		on("a", "freshet_quota_used", `organization="acme",resource="topics"`):    then(20, 89),
		on("a", "freshet_namespace_oldest_unacknowledged_age_seconds", ofDefault): then(30, 3500),
		on("a", "freshet_group_lag_messages",
			ofBilling): then(12, 99_000),
		on("a", "freshet_nats_stored_bytes", ""):          then(100, 790),
		on("b", "freshet_integrity_quarantine_bytes", ""): then(0, 4e9),
	},
}

// promtoolTest is one test of promtool.
type promtoolTest struct {
	Name     string              `json:"name"`
	Interval string              `json:"interval"`
	Series   []map[string]string `json:"input_series"`
	Checks   []promtoolCheck     `json:"promql_expr_test"`
}

// promtoolCheck compares the result of an expression at a time.
type promtoolCheck struct {
	Expr    string           `json:"expr"`
	At      string           `json:"eval_time"`
	Samples []promtoolSample `json:"exp_samples"`
}

type promtoolSample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// promtoolTests runs tests. JSON is YAML, too.
func promtoolTests(t *testing.T, tests []promtoolTest) {
	t.Helper()
	promtool := need(t, "promtool", "prometheus")
	text, err := json.Marshal(map[string]any{
		"rule_files": []string{"freshet-alerts.yml"}, "evaluation_interval": "1m", "tests": tests,
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file(t, folder, "freshet-alerts.yml", generate(t, "alerts"))
	run(t, folder, promtool, "test", "rules", file(t, folder, "tests.yml", string(text)))
}

// firing checks which alerts fire in a minute.
func firing(minute int, samples []promtoolSample) promtoolCheck {
	return promtoolCheck{Expr: `ALERTS{alertstate="firing"}`, At: fmt.Sprintf("%dm", minute), Samples: samples}
}

// with returns the series of healthy members with changes.
func with(change allSeries) []map[string]string {
	all := healthyMembers()
	maps.Copy(all, change)
	return all.input()
}

// TestAlertsOfThreeMembers checks with the series of three members that every alert fires once when it
// should, and not before the time that the rule names, and that no other alert fires with it. promtool
// also fails if an expression cannot be evaluated, as with "many-to-many matching".
func TestAlertsOfThreeMembers(t *testing.T) {
	t.Parallel()
	severity, after := map[string]string{}, map[string]int{}
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			severity[rule.Alert] = rule.Labels["severity"]
			after[rule.Alert] = int(time.Duration(rule.For) / time.Minute)
		}
	}
	tested := map[string]bool{}
	var tests []promtoolTest
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		s := scenarios[name]
		alert, _, _ := strings.Cut(name, ",")
		var want []promtoolSample
		for fires, labels := range s.fire {
			tested[fires] = true
			want = append(want, promtoolSample{Value: 1, Labels: fmt.Sprintf(
				`ALERTS{alertname=%q,alertstate="firing",job="freshet",severity=%q%s}`,
				fires, severity[fires], strings.TrimSuffix(","+labels, ","))})
		}
		checks := []promtoolCheck{firing(onset-1, nil), firing(onset+after[alert]+10, want)}
		if after[alert] > 0 {
			checks = append(checks, firing(onset+after[alert]-1, nil))
		}
		tests = append(tests, promtoolTest{name, "1m", with(s.change), checks})
	}
	for alert := range severity {
		if !tested[alert] {
			t.Errorf("no scenario in which %s fires", alert)
		}
	}
	promtoolTests(t, tests)
}

// TestAlertsAreQuiet checks that no alert fires without a reason.
func TestAlertsAreQuiet(t *testing.T) {
	t.Parallel()
	var tests []promtoolTest
	for _, name := range slices.Sorted(maps.Keys(quiet)) {
		tests = append(tests, promtoolTest{name, "1m", with(quiet[name]), []promtoolCheck{
			firing(onset-1, nil), firing(onset+5, nil), firing(length-5, nil),
		}})
	}
	promtoolTests(t, tests)
}
