package kafkadiff

// Reasons that several rows share.
const (
	internalError = "Kafka fails with an internal error; a defined response is better"
	fixedConfig   = "docs/spec/stream.md#configuration: fixed by the implementation"

	incompleteBatch = "docs/spec/stream.md#errors: what is not a whole batch is damaged"
)

// allowed is the complete list of the differences between freshet and Kafka in the
// conversations of this package. The first row that matches counts. In a pattern * stands for
// any text; an empty pattern matches everything.
var allowed = []allowance{
	{field: "*ErrorMessage", why: "Texts are our own, and we explain more errors"},

	// Topics.
	{conversation: "create invalid topics", step: "replication factor", why: "K18"},
	{conversation: "create invalid topics", step: "assignment with a gap", why: "K18"},
	{conversation: "create invalid topics", step: "assignment and count", why: "K18"},
	{conversation: "create partitions", step: "wrong assignment", why: "K18"},
	{
		conversation: "delete topics", field: "Topics[a/b].ErrorCode", kafka: "3", freshet: "17",
		why: "docs/spec/stream.md#errors: an illegal name is always 17",
	},
	{
		conversation: "metadata creates", step: "create", field: "Topics[new]*", kafka: "3", freshet: "0",
		why: "K11: the new topic is in the response; Kafka creates it afterwards",
	},
	{
		conversation: "metadata creates", step: "create", field: "Topics[new].Partitions.length", kafka: "0",
		freshet: "1", why: "K11: the new topic is in the response",
	},
	{
		conversation: "metadata creates", step: "create", field: "Topics[new].TopicID", kafka: "0",
		why: "K11: the new topic is in the response",
	},
	{
		conversation: "metadata by id", field: "Brokers.length", kafka: "0",
		why: "A rejected request still gets the brokers, with which the client can go on",
	},
	{
		conversation: "metadata by id", field: "ControllerID", kafka: "-1",
		why: "A rejected request still gets the brokers, with which the client can go on",
	},
	{conversation: "metadata by id", step: "neither", field: "ErrorCode", kafka: "-1", why: internalError},
	{
		conversation: "describe partitions", step: "unknown", field: "*AuthorizedOperations",
		why: "A topic that does not exist allows no operations",
	},
	{
		conversation: "describe partitions", step: "wrong cursor", field: "Topics.length",
		why: "An invalid cursor is an error of the request, so one row without a topic has it",
	},

	// Configurations.
	{field: "*Configs[flush.messages]*", why: "K5: every write is durable"},
	{field: "*Configs[flush.ms]*", why: "K5: every write is durable"},
	{field: "*Configs[min.insync.replicas]*", why: fixedConfig},
	{field: "*Configs[unclean.leader.election.enable]*", why: fixedConfig},
	{field: "*Configs[max.message.bytes].Value", why: "docs/spec/stream.md#configuration: 8 MiB"},
	{
		conversation: "describe configs", field: "*ConfigSynonyms.length",
		why: "We list the default of every setting; Kafka only defaults that are broker settings",
	},
	{
		conversation: "describe configs", step: "group", field: "*ReadOnly",
		why: "docs/spec/stream.md#apis: settings of groups cannot be changed",
	},
	{conversation: "config values", step: "min.insync.replicas=2", why: fixedConfig},
	{conversation: "config values", step: "unclean.leader.election.enable=true", why: fixedConfig},
	{conversation: "incremental alter configs", step: "operation 9", kafka: "-1", why: internalError},

	// Records.
	{
		conversation: "produce idempotent", step: "duplicate", field: "*LogAppendTime", freshet: "-1",
		why: "docs/spec/stream.md#idempotence: records that keep their own time have no append time",
	},
	{
		conversation: "produce i*", field: "*LogStartOffset", kafka: "0", freshet: "-1",
		why: "A rejected batch has no log start offset; Kafka sends one after some errors",
	},
	{conversation: "produce invalid batches", step: "codec 7", kafka: "-1", why: internalError},
	{conversation: "produce invalid batches", step: "not gzip", kafka: "-1", why: internalError},
	{conversation: "produce invalid batches", step: "empty", kafka: "87", freshet: "2", why: incompleteBatch},
	{conversation: "produce invalid batches", step: "short", kafka: "87", freshet: "2", why: incompleteBatch},
	{conversation: "produce invalid batches", step: "length", kafka: "87", freshet: "2", why: incompleteBatch},
	{
		conversation: "produce invalid batches", step: "magic 9", kafka: "2", freshet: "87",
		why: "docs/spec/stream.md#produce: a batch of another format is an invalid record, whatever its number",
	},
	{
		conversation: "produce invalid batches", step: "negative time",
		why: "Lookups by time do not know negative times; only -1 means none",
	},
	{
		conversation: "produce idempotent", step: "negative epoch", field: "*ErrorCode", kafka: "47", freshet: "87",
		why: "docs/spec/stream.md#produce: a producer id without an epoch is an invalid batch",
	},
	{
		conversation: "delete records", step: "produce", field: "*LogStartOffset", freshet: "0",
		why: "It would cost a lookup for each batch, and producers do not use the log start",
	},
	{conversation: "fetch", step: "isolation level 7", why: internalError},
	{conversation: "fetch limits", step: "bytes -1", why: internalError},
	{conversation: "fetch limits", step: "partition bytes -1", why: internalError},
	{conversation: "describe log dirs", field: "Dirs[0].Dir", why: "docs/spec/stream.md#apis: one directory, /"},

	// Groups and transactions.
	{conversation: "find coordinator", step: "transaction", why: "K17"},
	{conversation: "produce invalid batches", step: "transactional id", why: "K17"},
	{conversation: "produce invalid batches", step: "transactional bit", why: "K17"},
	{
		conversation: "classic joins consumer group", step: "joins", field: "Generation",
		why: "The epoch of a group only grows; Kafka's first one is 2",
	},
	{
		conversation: "consumer joins classic group", step: "classic again", field: "*MemberAssignment", freshet: "",
		why: "A group that rebalances has no assignments",
	},
	{conversation: "consumer offsets", step: "no member, epoch", kafka: "-1", why: internalError},
	{conversation: "consumer offsets", step: "no member, epoch", field: "*Topics.length", why: internalError},
}
