package messaging

// kafkaConfigDocs are the descriptions of topic configurations that DescribeConfigs returns.
var kafkaConfigDocs = map[string]string{
	configRetentionMillis: "Milliseconds to keep records, counted from their append; -1 for no limit.",
	configRetentionBytes:  "Bytes to keep per partition; -1 for no limit.",
	configCleanup: "delete removes records by age and size. compact keeps all records until compaction is " +
		"available, and requires a key in every record.",
	configMessageBytes:  "Maximum size of a record batch in bytes.",
	configTimestampType: "CreateTime keeps the producer's timestamps, LogAppendTime sets the time of the append.",
	configRouting: "How the key of a message produced over HTTP selects the partition; " +
		"fixed when the topic is created.",
	configStrict: "Whether records are removed by age and size although a subscription has not read them. " +
		"Stored and returned, without effect.",

	configRequire: "Contract: an expression in CEL that must be true for every message, such as payload.total >= 0. " +
		"Others are rejected. Empty for none.",

	configTimeBefore: "Milliseconds that a record's own timestamp may be before the time of the append.",
	configTimeAfter:  "Milliseconds that a record's own timestamp may be after the time of the append.",

	PropertyKeyValidation:   "Whether every key must start with the id of a schema that is registered for the topic.",
	PropertyValueValidation: "Whether every value must start with the id of a schema that is registered for the topic.",

	PropertyKeySubjects:   "Subject name strategy for the schemas of keys.",
	PropertyValueSubjects: "Subject name strategy for the schemas of values.",

	"compression.type":          "Stored, without effect. Batches are stored as producers compress them.",
	"compression.gzip.level":    "Stored, without effect. Batches are stored as producers compress them.",
	"compression.lz4.level":     "Stored, without effect. Batches are stored as producers compress them.",
	"compression.zstd.level":    "Stored, without effect. Batches are stored as producers compress them.",
	"delete.retention.ms":       "Stored, without effect until compaction is available.",
	"file.delete.delay.ms":      "Stored, without effect.",
	"index.interval.bytes":      "Stored, without effect.",
	"max.compaction.lag.ms":     "Stored, without effect until compaction is available.",
	"min.compaction.lag.ms":     "Stored, without effect until compaction is available.",
	"min.cleanable.dirty.ratio": "Stored, without effect until compaction is available.",
	"preallocate":               "Stored, without effect.",
	"segment.bytes":             "Stored, without effect.",
	"segment.index.bytes":       "Stored, without effect.",
	"segment.jitter.ms":         "Stored, without effect.",
	"segment.ms":                "Stored, without effect.",

	"flush.messages":                 "Every batch is on disk before it is acknowledged.",
	"flush.ms":                       "Every batch is on disk before it is acknowledged.",
	"min.insync.replicas":            "A partition has one replica.",
	"unclean.leader.election.enable": "A partition has one replica.",
}
