package messaging

// streamConfigDocs says what each configuration means, for those who ask over the
// stream protocol.
var streamConfigDocs = map[string]string{
	configRetentionMillis: "Milliseconds for which records are kept, counted from when they were appended; -1 for ever.",
	configRetentionBytes:  "Bytes that a partition keeps at most; -1 for no limit.",
	configCleanup: "delete removes records by age and size. compact keeps them all until compaction is " +
		"available, and needs a key in every record.",
	configMessageBytes:  "Bytes of the largest record batch that is taken.",
	configTimestampType: "CreateTime keeps the producer's timestamps, LogAppendTime sets the time of the append.",
	configRouting:       "How keys of messages that are produced over HTTP choose a partition; fixed when the topic is made.",
	configStrict:        "Whether records go by age and size although a subscription has not read them.",

	configTimeBefore: "Milliseconds that a record's timestamp may lie before the time of the append, where it keeps its own.",
	configTimeAfter:  "Milliseconds that a record's timestamp may lie behind the time of the append, where it keeps its own.",

	PropertyKeyValidation:   "Whether every key must start with the id of a schema that is registered for the topic.",
	PropertyValueValidation: "Whether every value must start with the id of a schema that is registered for the topic.",

	PropertyKeySubjects:   "How the subject of a key's schema is called.",
	PropertyValueSubjects: "How the subject of a value's schema is called.",

	"compression.type":          "Kept and shown. Batches are stored as producers compress them.",
	"compression.gzip.level":    "Kept and shown. Batches are stored as producers compress them.",
	"compression.lz4.level":     "Kept and shown. Batches are stored as producers compress them.",
	"compression.zstd.level":    "Kept and shown. Batches are stored as producers compress them.",
	"delete.retention.ms":       "Kept and shown, without effect until compaction is available.",
	"file.delete.delay.ms":      "Kept and shown, without effect.",
	"index.interval.bytes":      "Kept and shown, without effect.",
	"max.compaction.lag.ms":     "Kept and shown, without effect until compaction is available.",
	"min.compaction.lag.ms":     "Kept and shown, without effect until compaction is available.",
	"min.cleanable.dirty.ratio": "Kept and shown, without effect until compaction is available.",
	"preallocate":               "Kept and shown, without effect.",
	"segment.bytes":             "Kept and shown, without effect.",
	"segment.index.bytes":       "Kept and shown, without effect.",
	"segment.jitter.ms":         "Kept and shown, without effect.",
	"segment.ms":                "Kept and shown, without effect.",

	"flush.messages":                 "Every batch is on disk before it is acknowledged.",
	"flush.ms":                       "Every batch is on disk before it is acknowledged.",
	"min.insync.replicas":            "A partition has one replica.",
	"unclean.leader.election.enable": "A partition has one replica.",
}
