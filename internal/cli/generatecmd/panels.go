package generatecmd

// row is a row of panels with a heading.
type row struct {
	title  string
	panels []panel
}

// panel shows the results of queries over time, or with stat their last values.
type panel struct {
	title, unit string
	stat        bool
	queries     []query
}

type query struct{ expr, legend string }

// The expressions fit to one server and to several members. docs/reference/metrics.md#several-members
// lists which series only the owner of something exports (add them up), and which ones are the same on
// all members (take the largest).

// serverRows returns the rows of the dashboard of one server.
func serverRows() []row {
	return []row{
		{"Overview", []panel{unhealthyClusters, topics, backlogTotal, newestBackup}},
		messageRow, consumerRow, requestRow,
		{"Capacity", []panel{disk, resourceStore, quotas, quotaRejections}},
		identityRow,
	}
}

// ensembleRows returns the rows of the dashboard of an ensemble.
func ensembleRows() []row {
	return []row{
		{"Overview", []panel{liveMembers, missingReplicas, unhealthyClusters, topics, backlogTotal, newestBackup}},
		memberRow, replicationRow, logRow, messageRow, consumerRow, requestRow,
		{"Capacity", []panel{disk, resourceStore, quotas, quotaRejections}},
		identityRow,
	}
}

var (
	unhealthyClusters = panel{"Unhealthy clusters", "short", true, []query{
		{`count(count by (organization, cluster) (freshet_cluster_problem{@cluster})) or vector(0)`, "unhealthy"},
	}}
	topics = panel{"Topics", "short", true, []query{
		{`sum(max by (organization, cluster) (freshet_messaging_topics{@cluster}))`, "topics"},
	}}
	backlogTotal = panel{"Backlog", "short", true, []query{
		{`sum(freshet_namespace_backlog_messages{@cluster})`, "messages"},
	}}
	newestBackup = panel{"Newest backup", "s", true, []query{
		{`time() - max(freshet_backup_last_timestamp_seconds{@server})`, "age"},
	}}
	liveMembers = panel{"Members", "short", true, []query{
		{`sum(max by (member) (freshet_ensemble_member_live{@server}))`, "live"},
		{`count(max by (member) (freshet_ensemble_member_live{@server}))`, "configured"},
	}}
	missingReplicas = panel{"Missing replicas", "short", true, []query{
		{`sum(max by (member) (freshet_log_replicas_missing{@server}))`, "missing"},
	}}
)

// memberRow compares the members.
var memberRow = row{"Members", []panel{
	{"Requests per second", "reqps", false, []query{
		{`sum by (instance) (rate(freshet_http_requests_total{@server}[@rate]))`, "HTTP {{instance}}"},
		{`sum by (instance) (rate(freshet_stream_requests_total{@server}[@rate]))`, "Kafka {{instance}}"},
	}},
	{"Messages per second, by owner", "short", false, []query{
		{
			`sum by (instance) (rate(freshet_namespace_produced_messages_total{@cluster}[@rate]))`,
			"in {{instance}}",
		},
		{
			`sum by (instance) (rate(freshet_namespace_delivered_messages_total{@cluster}[@rate]))`,
			"out {{instance}}",
		},
	}},
	{"Processors", "short", false, []query{
		{`sum by (instance) (rate(process_cpu_seconds_total{@server}[@rate]))`, "{{instance}}"},
	}},
	{"Memory", "bytes", false, []query{
		{`sum by (instance) (process_resident_memory_bytes{@server})`, "{{instance}}"},
	}},
}}

// replicationRow shows what tolerates fewer failures than it should.
var replicationRow = row{"Replication and files", []panel{
	{"Live members", "short", false, []query{
		{`max by (member) (freshet_ensemble_member_live{@server})`, "{{member}}"},
	}},
	{"Replicas of the log", "short", false, []query{
		{`max by (member) (freshet_log_replicas_missing{@server})`, "missing {{member}}"},
		{`max(freshet_log_streams_without_majority{@server})`, "streams without majority"},
	}},
	{"Damaged and differing parts", "short", false, []query{
		{`max by (instance) (freshet_integrity_damaged_parts{@server})`, "damaged {{instance}}"},
		{`max by (instance) (freshet_integrity_differing_parts{@server})`, "differing {{instance}}"},
	}},
	{"Quarantine", "bytes", false, []query{
		{`max by (instance) (freshet_integrity_quarantine_bytes{@server})`, "{{instance}}"},
	}},
	{"Difference of clocks", "s", false, []query{
		{`max(freshet_ensemble_clock_difference_seconds{@server})`, "difference"},
	}},
}}

// logRow shows the replicated log.
var logRow = row{"Replicated log", []panel{
	{"NATS servers", "short", false, []query{
		{`min by (instance) (freshet_nats_healthy{@server})`, "healthy {{instance}}"},
		{`max by (instance) (freshet_nats_peers{@server})`, "peers {{instance}}"},
	}},
	{"Streams led", "short", false, []query{
		{`sum by (instance) (freshet_nats_streams_led{@server})`, "{{instance}}"},
	}},
	{"Log size", "bytes", false, []query{
		{`max by (instance) (freshet_nats_stored_bytes{@server})`, "used {{instance}}"},
		{`max by (instance) (freshet_nats_stored_limit_bytes{@server})`, "limit {{instance}}"},
	}},
	{"Lag of replicas", "short", false, []query{
		{`max by (member) (freshet_log_replica_lag{@server})`, "{{member}}"},
	}},
	{"Late acknowledgements per second", "short", false, []query{
		{`sum by (instance) (rate(freshet_log_asked_appends_total{@server}[@rate]))`, "asked {{instance}}"},
		{`sum by (instance) (rate(freshet_log_resent_appends_total{@server}[@rate]))`, "sent again {{instance}}"},
	}},
}}

var messageRow = row{"Messages", []panel{
	{"Messages per second", "short", false, []query{
		{
			`sum by (organization, cluster) (rate(freshet_namespace_produced_messages_total{@cluster}[@rate]))`,
			"in {{organization}}/{{cluster}}",
		},
		{
			`sum by (organization, cluster) (rate(freshet_namespace_delivered_messages_total{@cluster}[@rate]))`,
			"out {{organization}}/{{cluster}}",
		},
	}},
	{"Bytes per second", "Bps", false, []query{
		{
			`sum by (organization, cluster) (rate(freshet_namespace_produced_bytes_total{@cluster}[@rate]))`,
			"in {{organization}}/{{cluster}}",
		},
		{
			`sum by (organization, cluster) (rate(freshet_namespace_delivered_bytes_total{@cluster}[@rate]))`,
			"out {{organization}}/{{cluster}}",
		},
	}},
}}

var consumerRow = row{"Consumers", []panel{
	{"Backlog", "short", false, []query{
		{
			`sum by (organization, cluster, namespace) (freshet_namespace_backlog_messages{@cluster})`,
			"{{organization}}/{{cluster}} {{namespace}}",
		},
	}},
	{"Age of the oldest message in a backlog", "s", false, []query{
		{
			`max by (organization, cluster, namespace) (freshet_namespace_oldest_unacknowledged_age_seconds{@cluster})`,
			"{{organization}}/{{cluster}} {{namespace}}",
		},
	}},
	{"Lag of consumer groups", "short", false, []query{
		{
			`max by (organization, cluster, tenant, group, topic) (freshet_group_lag_messages{@cluster})`,
			"{{group}} {{topic}}",
		},
	}},
	{"Dead letters per second", "short", false, []query{
		{
			`sum by (namespace) (rate(freshet_namespace_dead_letters_total{@cluster}[@rate]))`,
			"{{namespace}}",
		},
	}},
}}

var requestRow = row{"Requests", []panel{
	{"Requests per second", "reqps", false, []query{
		{`sum by (surface, class) (rate(freshet_http_requests_total{@server}[@rate]))`, "{{surface}} {{class}}"},
	}},
	{"Request latency, 99th percentile", "s", false, []query{
		{
			`histogram_quantile(0.99, sum by (le, surface) ` +
				`(rate(freshet_http_request_duration_seconds_bucket{@server}[@rate])))`,
			"{{surface}}",
		},
	}},
	{"Kafka protocol: requests per second", "reqps", false, []query{
		{`sum by (api) (rate(freshet_stream_requests_total{@server}[@rate]))`, "{{api}}"},
	}},
	{"Kafka protocol: connections", "short", false, []query{
		{`sum by (listener) (freshet_stream_connections{@server})`, "{{listener}}"},
	}},
}}

// Panels of capacities. Every member has its own disk and its own copy of the resource store.
var (
	disk = panel{"Disk", "bytes", false, []query{
		{`sum by (instance) (freshet_store_disk_used_bytes{@server})`, "used {{instance}}"},
		{`min by (instance) (freshet_store_disk_available_bytes{@server})`, "free {{instance}}"},
	}}
	resourceStore = panel{"Resource store", "bytes", false, []query{
		{`max by (instance) (freshet_etcd_size_bytes{of="used",@server})`, "used {{instance}}"},
		{`min(freshet_etcd_quota_bytes{@server})`, "quota"},
	}}
	quotas = panel{"Quotas", "percentunit", false, []query{
		{
			`max by (organization, resource) (freshet_quota_used{@organization} / freshet_quota_limit)`,
			"{{organization}} {{resource}}",
		},
	}}
	quotaRejections = panel{"Requests rejected by quotas per second", "short", false, []query{
		{
			`sum by (organization, resource) (rate(freshet_quota_refusals_total{@organization}[@rate]))`,
			"{{organization}} {{resource}}",
		},
	}}
)

var identityRow = row{"Identity and audit", []panel{
	{"Accounts and keys", "short", false, []query{
		{`max(freshet_accounts{@server})`, "accounts"},
		{`max(freshet_api_keys{@server})`, "keys"},
	}},
	{"Audit records per second", "short", false, []query{
		{`sum by (outcome) (rate(freshet_audit_records_total{@server}[@rate]))`, "{{outcome}}"},
	}},
	{"Schemas", "short", false, []query{
		{
			`sum by (organization, cluster) ` +
				`(max by (organization, cluster, state) (freshet_registry_subjects{@cluster}))`,
			"{{organization}}/{{cluster}}",
		},
	}},
}}
