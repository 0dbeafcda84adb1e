package messaging

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

// Names of Kafka topic configurations that have an effect (docs/spec/stream.md#configuration).
const (
	configRetentionMillis = "retention.ms"
	configRetentionBytes  = "retention.bytes"
	configCleanup         = "cleanup.policy"
	configMessageBytes    = "max.message.bytes"
	configTimestampType   = "message.timestamp.type"
	configRouting         = "freshet.routing"
	configStrict          = "freshet.retention.strict"
	configTimeBefore      = "message.timestamp.before.max.ms"
	configTimeAfter       = "message.timestamp.after.max.ms"
	configRequire         = "freshet.require"

	routingMurmur2 = "murmur2"
	routingMurmur3 = "murmur3"

	cleanupDelete  = "delete"
	cleanupCompact = "compact"
)

// defaultBatchBytes is the default and the maximum of max.message.bytes.
const defaultBatchBytes = 8 << 20

// defaultTimeAfter is how many milliseconds a record's timestamp may be ahead by default.
const defaultTimeAfter = 3_600_000

// kafkaConfig is the definition of one topic configuration.
type kafkaConfig struct {
	defaultValue string
	kind         ConfigKind
	check        func(value string, limits *Limits) error
	fixed        bool // any value but the default is rejected
}

// ConfigKind is the type of a configuration's value.
type ConfigKind uint8

// The types; the numbers are those of the Kafka protocol.
const (
	ConfigBoolean ConfigKind = 1
	ConfigString  ConfigKind = 2
	ConfigInt     ConfigKind = 3
	ConfigLong    ConfigKind = 5
	ConfigDouble  ConfigKind = 6
	ConfigList    ConfigKind = 7
)

var kafkaConfigs = map[string]kafkaConfig{
	configRetentionMillis: {"604800000", ConfigLong, atLeast(-1), false},
	configRetentionBytes:  {"-1", ConfigLong, atLeast(math.MinInt64), false},
	configCleanup:         {cleanupDelete, ConfigList, cleanupPolicies, false},
	configMessageBytes:    {strconv.Itoa(defaultBatchBytes), ConfigInt, batchBytes, false},
	configTimestampType:   {"CreateTime", ConfigString, oneOf("CreateTime", "LogAppendTime"), false},
	configRouting:         {routingMurmur3, ConfigString, oneOf(routingMurmur2, routingMurmur3), false},
	configStrict:          {"false", ConfigBoolean, oneOf("true", "false"), false},
	configRequire:         {"", ConfigString, contractText, false},
	configTimeBefore:      {"9223372036854775807", ConfigLong, atLeast(0), false},
	configTimeAfter:       {strconv.Itoa(defaultTimeAfter), ConfigLong, atLeast(0), false},

	PropertyKeyValidation:   {"false", ConfigBoolean, oneOf("true", "false"), false},
	PropertyValueValidation: {"false", ConfigBoolean, oneOf("true", "false"), false},

	PropertyKeySubjects:   {subjectStrategies[0], ConfigString, oneOf(subjectStrategies...), false},
	PropertyValueSubjects: {subjectStrategies[0], ConfigString, oneOf(subjectStrategies...), false},

	// Stored and returned, without effect.
	"compression.type": {
		"producer", ConfigString,
		oneOf("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"), false,
	},
	"compression.gzip.level":    {"-1", ConfigInt, gzipLevel, false},
	"compression.lz4.level":     {"9", ConfigInt, between(1, 17), false},
	"compression.zstd.level":    {"3", ConfigInt, between(-131072, 22), false},
	"delete.retention.ms":       {"86400000", ConfigLong, atLeast(0), false},
	"file.delete.delay.ms":      {"60000", ConfigLong, atLeast(0), false},
	"index.interval.bytes":      {"4096", ConfigInt, between(0, math.MaxInt32), false},
	"max.compaction.lag.ms":     {"9223372036854775807", ConfigLong, atLeast(1), false},
	"min.compaction.lag.ms":     {"0", ConfigLong, atLeast(0), false},
	"min.cleanable.dirty.ratio": {"0.5", ConfigDouble, fraction, false},
	"preallocate":               {"false", ConfigBoolean, oneOf("true", "false"), false},
	"segment.bytes":             {"1073741824", ConfigInt, between(1<<20, math.MaxInt32), false},
	"segment.index.bytes":       {"10485760", ConfigInt, between(4, math.MaxInt32), false},
	"segment.jitter.ms":         {"0", ConfigLong, atLeast(0), false},
	"segment.ms":                {"604800000", ConfigLong, atLeast(1), false},

	// Fixed by the implementation.
	"flush.messages":                 {"1", ConfigLong, nil, true},
	"flush.ms":                       {"0", ConfigLong, nil, true},
	"min.insync.replicas":            {"1", ConfigInt, nil, true},
	"unclean.leader.election.enable": {"false", ConfigBoolean, nil, true},
}

func atLeast(least int64) func(string, *Limits) error { return between(least, math.MaxInt64) }

func between(least, most int64) func(string, *Limits) error {
	return func(value string, _ *Limits) error {
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < least || n > most {
			return errs.Newf(errs.Invalid, "%q is not a whole number from %d to %d", value, least, most)
		}
		return nil
	}
}

// gzipLevel accepts the levels of gzip, and -1 for the default.
func gzipLevel(value string, limits *Limits) error {
	if value == "-1" {
		return nil
	}
	return between(1, 9)(value, limits)
}

// canonicalConfig returns the form in which a value is stored: without spaces around it, and a boolean in
// lower case.
func canonicalConfig(name, value string) string {
	value = strings.TrimSpace(value)
	if kafkaConfigs[name].kind == ConfigBoolean {
		value = strings.ToLower(value)
	}
	return value
}

func oneOf(values ...string) func(string, *Limits) error {
	return func(value string, _ *Limits) error {
		if !slices.Contains(values, value) {
			return errs.Newf(errs.Invalid, "%q is not one of %s", value, strings.Join(values, ", "))
		}
		return nil
	}
}

func fraction(value string, _ *Limits) error {
	if f, err := strconv.ParseFloat(value, 64); err != nil || f < 0 || f > 1 {
		return errs.Newf(errs.Invalid, "%q is not a number between 0 and 1", value)
	}
	return nil
}

// cleanupPolicies accepts a list of policies. With none, nothing is deleted or compacted.
func cleanupPolicies(value string, limits *Limits) error {
	if value == "" {
		return nil
	}
	for policy := range strings.SplitSeq(value, ",") {
		if err := oneOf(cleanupDelete, cleanupCompact)(strings.TrimSpace(policy), limits); err != nil {
			return err
		}
	}
	return nil
}

func batchBytes(value string, _ *Limits) error {
	if n, err := strconv.Atoi(value); err != nil || n < 0 || n > defaultBatchBytes {
		return errs.Newf(errs.Invalid, "%q is not a number of bytes up to %d", value, defaultBatchBytes)
	}
	return nil
}

// contractText checks only the length of a contract. Type contracts compiles it.
func contractText(value string, _ *Limits) error {
	if len(value) > filter.MaxContract {
		return errs.Newf(errs.Invalid, "%w: it has %d bytes, at most %d are allowed", filter.ErrExpression, len(value),
			filter.MaxContract)
	}
	return nil
}

// configError returns the error of a configuration's value, or nil.
func configError(name string, err error) error {
	if errs.KindOf(err) != errs.Invalid {
		return err
	}
	return errs.Newf(errs.Invalid, "%w: %s: %w", ErrConfig, name, err)
}

// checkKafkaConfig validates one configuration of a topic.
func checkKafkaConfig(name, value string, limits *Limits) error {
	config, known := kafkaConfigs[name]
	if !known {
		return errs.Newf(errs.Invalid, "%w: %s is not a topic configuration", ErrConfig, name)
	}
	if config.fixed {
		if value != config.defaultValue {
			return errs.Newf(errs.Invalid, "%w: %s cannot be changed; its value is always %s", ErrConfig, name,
				config.defaultValue)
		}
		return nil
	}
	return configError(name, config.check(value, limits))
}

// kafkaRules are the effective Kafka configurations of a topic. Nil and zero fields mean that the
// topic does not set them.
type kafkaRules struct {
	retainMillis *int64
	retainBytes  *int64 // per partition
	batchBytes   int    // 0 means the default
	appendTime   bool
	compact      bool   // no delete policy: age and size delete nothing
	keyed        bool   // every message needs a key because the topic is compacted
	timeBefore   *int64 // milliseconds that a record's timestamp may be in the past
	timeAfter    *int64 // milliseconds that it may be in the future
	require      string // expression that every message must fulfil; "" for none
}

func (r *kafkaRules) override(config map[string]string) {
	for name, value := range config {
		switch name {
		case configRetentionMillis:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				r.retainMillis = &n
			}
		case configRetentionBytes:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				r.retainBytes = &n
			}
		case configMessageBytes:
			r.batchBytes, _ = strconv.Atoi(value)
		case configTimestampType:
			r.appendTime = value == "LogAppendTime"
		case configCleanup:
			r.compact = !strings.Contains(value, cleanupDelete)
			r.keyed = strings.Contains(value, cleanupCompact)
		case configRequire:
			r.require = value
		case configTimeBefore:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				r.timeBefore = &n
			}
		case configTimeAfter:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				r.timeAfter = &n
			}
		}
	}
}

// times returns the allowed range of timestamps for a record appended now. bounded is false when
// the broker sets all timestamps itself (LogAppendTime).
func (r *kafkaRules) times(now int64) (from, to int64, bounded bool) {
	from, to = math.MinInt64, math.MaxInt64
	if r.timeBefore != nil {
		from = now - *r.timeBefore
	}
	after := int64(defaultTimeAfter)
	if r.timeAfter != nil {
		after = *r.timeAfter
	}
	if after < math.MaxInt64-now {
		to = now + after
	}
	return from, to, !r.appendTime
}

// configure sets the fields of the engine's configuration that Kafka configurations override.
func (r *kafkaRules) configure(c *engine.TopicConfig) {
	if r.retainMillis != nil {
		c.RetainAge = max(time.Duration(*r.retainMillis)*time.Millisecond, -1)
		if *r.retainMillis > maxMinutes*60_000 {
			c.RetainAge = -1
		}
	}
	if r.retainBytes != nil {
		c.RetainBytes = max(*r.retainBytes, -1)
		if *r.retainBytes > math.MaxInt64/int64(c.Partitions) {
			c.RetainBytes = -1 // the product would overflow: no limit
		} else if *r.retainBytes > 0 {
			c.RetainBytes *= int64(c.Partitions)
		}
	}
	if r.compact { // compaction is not implemented, so keep everything that it would keep
		c.RetainAge, c.RetainBytes = -1, -1
	}
}
