package operations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The tests of this file's series evaluate rules and panels with what three members export. Every value is a
// gauge or counter in the notation of promtool, with one sample a minute.

// onset is the minute in which the series of a scenario change from healthy to what raises the alert, and
// length the number of minutes that the series have.
const (
	onset  = 20
	length = 100
)

// always is a series that does not change.
func always(v float64) string { return fmt.Sprintf("%g+0x%d", v, length) }

// then is a series that changes its value at onset.
func then(before, after float64) string {
	return fmt.Sprintf("%g+0x%d %g+0x%d", before, onset-1, after, length-onset)
}

// growing is a counter that grows each minute.
func growing(step float64) string { return fmt.Sprintf("0+%gx%d", step, length) }

// grows is a counter that is constant until onset and grows each minute from then on.
func grows(step float64) string {
	return fmt.Sprintf("0+0x%d %g+%gx%d", onset-1, step, step, length-onset)
}

// appears is a series that begins at onset.
func appears(v float64) string { return fmt.Sprintf("_x%d %g+0x%d", onset, v, length-onset) }

// disappears is a series that ends at onset.
func disappears(v float64) string { return fmt.Sprintf("%g+0x%d stale", v, onset-1) }

// allSeries contains the values of series, by name and labels.
type allSeries map[string]string

var memberNames = []string{"a", "b", "c"}

// on returns the series of a member. labels can be "".
func on(member, name, labels string) string {
	return fmt.Sprintf(`%s{instance=%q,job="freshet"%s}`, name, member, strings.TrimSuffix(","+labels, ","))
}

// onAll sets a series of every member.
func (s allSeries) onAll(name, labels, values string) {
	for _, member := range memberNames {
		s[on(member, name, labels)] = values
	}
}

const (
	prod      = `organization="acme",cluster="prod"`
	ofDefault = prod + `,namespace="public/default"`
	ofBilling = prod + `,tenant="public",group="billing",topic="orders"`
)

// healthyMembers returns what three healthy members export: a runs the controllers and takes the backups, and
// each owns a part of the topics.
func healthyMembers() allSeries {
	s := allSeries{}
	for name, value := range map[string]float64{
		"up": 1, "freshet_etcd_quota_bytes": 1000, "freshet_etcd_refusing": 0,
		"freshet_log_streams_without_majority": 0, "freshet_integrity_damaged_parts": 0,
		"freshet_integrity_differing_parts": 0, "freshet_integrity_damages_total": 2,
		"freshet_integrity_quarantine_bytes": 0, "freshet_ensemble_clock_difference_seconds": 0,
		"freshet_nats_healthy": 1, "freshet_nats_peers": 2, "freshet_nats_streams_without_leader": 0,
		"freshet_nats_streams_led": 2, "freshet_nats_stored_bytes": 100, "freshet_nats_stored_limit_bytes": 1000,
		"freshet_accounts": 4, "freshet_api_keys": 6, "process_resident_memory_bytes": 1e8,
	} {
		s.onAll(name, "", always(value))
	}
	for _, member := range memberNames {
		labels := `member="` + member + `"`
		s.onAll("freshet_ensemble_member_live", labels, always(1))
		s.onAll("freshet_log_replicas_missing", labels, always(0))
		s.onAll("freshet_log_replica_lag", labels, always(3))
		// The members that take no backups report 0, which is long ago. The tests begin at 0.
		s[on(member, "freshet_backup_last_timestamp_seconds", "")] = always(-1e9)
	}
	s[on("a", "freshet_backup_last_timestamp_seconds", "")] = always(0)
	s.onAll("freshet_backups_total", `outcome="failed"`, always(0))
	s.onAll("freshet_build_info", `version="0.1.0"`, always(1))
	s.onAll("freshet_etcd_size_bytes", `of="used"`, always(200))
	s.onAll("freshet_etcd_size_bytes", `of="file"`, always(900))
	s.onAll("freshet_clusters", `healthy="false"`, always(0))
	s.onAll("freshet_messaging_topics", prod, always(7))
	s.onAll("freshet_registry_subjects", prod+`,state="active"`, always(4))
	s.onAll("freshet_registry_subjects", prod+`,state="deleted"`, always(1))
	s.onAll("freshet_store_disk_used_bytes", prod, always(1e9))
	s.onAll("freshet_store_disk_available_bytes", prod, always(10e9))
	s.onAll("freshet_damaged_messages_total", prod, always(1))
	s.onAll("freshet_namespace_backlog_messages", ofDefault, always(10))
	s.onAll("freshet_namespace_oldest_unacknowledged_age_seconds", ofDefault, always(30))
	s.onAll("freshet_quota_used", `organization="acme",resource="topics"`, always(20))
	s.onAll("freshet_quota_limit", `organization="acme",resource="topics"`, always(100))
	s.onAll("freshet_stream_connections", `listener="tls"`, always(5))
	s.onAll("process_cpu_seconds_total", "", growing(6))
	for name, labels := range map[string]string{
		"freshet_log_asked_appends_total": "", "freshet_log_resent_appends_total": "",
		"freshet_quota_refusals_total":         `organization="acme",resource="topics"`,
		"freshet_namespace_dead_letters_total": ofDefault,
	} {
		s.onAll(name, labels, always(0))
	}
	for name, labels := range map[string]string{
		"freshet_namespace_produced_messages_total": ofDefault, "freshet_namespace_produced_bytes_total": ofDefault,
		"freshet_namespace_delivered_messages_total": ofDefault, "freshet_namespace_delivered_bytes_total": ofDefault,
		"freshet_http_requests_total":                  `surface="messages",class="2xx"`,
		"freshet_http_request_duration_seconds_bucket": `surface="messages",le="+Inf"`,
		"freshet_stream_requests_total":                `api="Produce"`,
		"freshet_audit_records_total":                  `outcome="written"`,
	} {
		s.onAll(name, labels, growing(60))
	}
	s.onAll("freshet_http_request_duration_seconds_bucket", `surface="messages",le="0.1"`, growing(60))
	s.onAll("freshet_http_requests_total", `surface="messages",class="5xx"`, always(3))
	s.onAll("freshet_audit_records_total", `outcome="dropped"`, always(3))
	// One member coordinates a consumer group, and only that one reports it.
	s[on("a", "freshet_group_lag_messages", ofBilling)] = always(12)
	return s
}

// input returns the series as promtool reads them.
func (s allSeries) input() (list []map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		list = append(list, map[string]string{"series": name, "values": s[name]})
	}
	return list
}
