package messaging

import (
	"maps"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// Retention bounds the age and the size of stored messages that are acknowledged or have no
// subscription. -1 means no limit, 0 means that they are not kept.
type Retention struct {
	Minutes   int64 `json:"minutes"`
	Megabytes int64 `json:"megabytes"`
}

// QuotaAction is the reaction to a backlog that exceeds its quota.
type QuotaAction string

// The actions in Pulsar's terms. Over HTTP, holding a producer and rejecting it are the same: the
// call fails and may be retried.
const (
	QuotaHold  QuotaAction = "producer_request_hold"
	QuotaFail  QuotaAction = "producer_exception"
	QuotaEvict QuotaAction = "consumer_backlog_eviction"
)

// BacklogQuota bounds the unacknowledged bytes of a subscription.
type BacklogQuota struct {
	Bytes  int64       `json:"bytes"`
	Action QuotaAction `json:"action"`
}

// AutoCreation defines whether a new schema or subscription may create its topic, and with how many
// partitions.
type AutoCreation struct {
	Allow      bool  `json:"allow"`
	Partitions int32 `json:"partitions,omitempty"` // 0 for a topic without partitions
}

// Strategy is a compatibility strategy: it defines which changes of a topic's schema are allowed.
type Strategy string

// The strategies; StrategyUndefined means that the next level decides.
const (
	StrategyUndefined          Strategy = "UNDEFINED"
	StrategyAlwaysIncompatible Strategy = "ALWAYS_INCOMPATIBLE"
	StrategyAlwaysCompatible   Strategy = "ALWAYS_COMPATIBLE"
	StrategyBackward           Strategy = "BACKWARD"
	StrategyForward            Strategy = "FORWARD"
	StrategyFull               Strategy = "FULL"
	StrategyBackwardTransitive Strategy = "BACKWARD_TRANSITIVE"
	StrategyForwardTransitive  Strategy = "FORWARD_TRANSITIVE"
	StrategyFullTransitive     Strategy = "FULL_TRANSITIVE"
)

var strategies = []Strategy{
	StrategyUndefined, StrategyAlwaysIncompatible, StrategyAlwaysCompatible, StrategyBackward, StrategyForward,
	StrategyFull, StrategyBackwardTransitive, StrategyForwardTransitive, StrategyFullTransitive,
}

// Action is an action that Pulsar's permissions grant to a role.
type Action string

// The actions. Only produce and consume have an effect; the others are stored so that
// administration tools read back what they wrote.
const (
	ActionProduce   Action = "produce"
	ActionConsume   Action = "consume"
	actionFunctions Action = "functions"
	actionSources   Action = "sources"
	actionSinks     Action = "sinks"
	actionPackages  Action = "packages"
)

var actions = []Action{ActionProduce, ActionConsume, actionFunctions, actionSources, actionSinks, actionPackages}

// Policies are the policies of a namespace, or of a single topic, which override the namespace's. A
// nil field is not set.
type Policies struct {
	Retention            *Retention          `json:"retention,omitempty"`
	TTLSeconds           *int64              `json:"ttlSeconds,omitempty"`
	BacklogQuota         *BacklogQuota       `json:"backlogQuota,omitempty"`
	Deduplicate          *bool               `json:"deduplicate,omitempty"`
	MaxUnacked           *int                `json:"maxUnacked,omitempty"`
	MaxMessageBytes      *int                `json:"maxMessageBytes,omitempty"`
	DelayedDelivery      *bool               `json:"delayedDelivery,omitempty"`
	Compatibility        Strategy            `json:"compatibility,omitempty"`
	ValidatePayload      *bool               `json:"validatePayload,omitempty"`
	ParsePayload         *bool               `json:"parsePayload,omitempty"` // weaker than ValidatePayload
	RequireSchemaVersion *bool               `json:"nameSchemaVersion,omitempty"`
	AutoTopicCreation    *AutoCreation       `json:"autoTopicCreation,omitempty"`  // namespaces only
	AllowSchemaUpdates   *bool               `json:"allowSchemaUpdates,omitempty"` // namespaces only
	MaxTopics            *int                `json:"maxTopics,omitempty"`          // namespaces only
	Clusters             []string            `json:"clusters,omitempty"`           // namespaces only; informational
	Permissions          map[string][]Action `json:"permissions,omitempty"`
	Properties           map[string]string   `json:"properties,omitempty"`
	// topics only: Kafka topic configurations by name
	Kafka map[string]string `json:"stream,omitempty"`
}

// DefaultPolicies returns the policies that apply where neither a topic nor its namespace sets one.
// A nil field means the cluster's limit: Limits.MaxUnacked, Limits.MessageBytes, and no backlog
// quota.
func DefaultPolicies() *Policies {
	return &Policies{
		// docs/spec/messages.md#m10: seven days or 10 GiB per topic, whichever comes first.
		Retention:            &Retention{Minutes: 7 * 24 * 60, Megabytes: 10 << 10},
		TTLSeconds:           new(int64(0)), // unacknowledged messages do not expire
		Deduplicate:          new(false),
		DelayedDelivery:      new(true),
		Compatibility:        StrategyFull,
		ValidatePayload:      new(false),
		ParsePayload:         new(false),
		RequireSchemaVersion: new(false),
		AutoTopicCreation:    &AutoCreation{Allow: true},
		AllowSchemaUpdates:   new(true),
		MaxTopics:            new(0), // no limit per namespace
	}
}

// defaults is read-only.
var defaults = DefaultPolicies()

// valueOr returns the value that a namespace sets, or the default.
func valueOr[T any](set, byDefault *T) T {
	if set != nil {
		return *set
	}
	return *byDefault
}

// clone returns a copy whose maps and slices may be modified. Values behind pointers are shared and
// are never modified, only replaced.
func (p Policies) clone() Policies {
	p.Permissions = maps.Clone(p.Permissions)
	p.Properties = maps.Clone(p.Properties)
	p.Kafka = maps.Clone(p.Kafka)
	p.Clusters = slices.Clone(p.Clusters)
	return p
}

const (
	maxRoles         = 1000
	maxPropertyBytes = 64 << 10
	maxRoleName      = 512
	maxMinutes       = int64(1<<63-1) / int64(time.Minute)
	maxSeconds       = int64(1<<63-1) / int64(time.Second)
	maxMegabytes     = int64(1) << 43
)

func (p *Policies) validate(limits *Limits) error {
	if r := p.Retention; r != nil {
		if r.Minutes < -1 || r.Megabytes < -1 || r.Minutes > maxMinutes || r.Megabytes > maxMegabytes {
			return errs.Newf(errs.Invalid, "%w: retention must be between -1 (no limit) and %d minutes, and between "+
				"-1 and %d megabytes", ErrPolicy, maxMinutes, maxMegabytes)
		}
		if (r.Minutes == 0) != (r.Megabytes == 0) {
			return errs.Newf(errs.Invalid, "%w: retention time and size must be zero together, or neither", ErrPolicy)
		}
	}
	if t := p.TTLSeconds; t != nil && (*t < 0 || *t > maxSeconds) {
		return errs.Newf(errs.Invalid, "%w: message TTL must be between 0 and %d seconds", ErrPolicy, maxSeconds)
	}
	if q := p.BacklogQuota; q != nil {
		if q.Bytes < -1 {
			return errs.Newf(errs.Invalid, "%w: backlog quota must be -1 (no limit) or more bytes", ErrPolicy)
		}
		if q.Action != QuotaHold && q.Action != QuotaFail && q.Action != QuotaEvict {
			return errs.Newf(errs.Invalid, "%w: backlog quota policy %q is unknown", ErrPolicy, q.Action)
		}
	}
	if n := p.MaxUnacked; n != nil && (*n < 0 || *n > limits.MaxUnacked) {
		return errs.Newf(errs.Invalid, "%w: unacknowledged messages per subscription must be between 0 and %d",
			ErrPolicy, limits.MaxUnacked)
	}
	if n := p.MaxMessageBytes; n != nil && (*n < 0 || *n > limits.MessageBytes) {
		return errs.Newf(errs.Invalid, "%w: message size must be between 0 and %d bytes", ErrPolicy,
			limits.MessageBytes)
	}
	if n := p.MaxTopics; n != nil && *n < 0 {
		return errs.Newf(errs.Invalid, "%w: limit of topics must not be negative", ErrPolicy)
	}
	if a := p.AutoTopicCreation; a != nil && (a.Partitions < 0 || a.Partitions > limits.Partitions) {
		return errs.Newf(errs.Invalid, "%w: partitions must be between 0 and %d", ErrPolicy, limits.Partitions)
	}
	if p.Compatibility != "" && !slices.Contains(strategies, p.Compatibility) {
		return errs.Newf(errs.Invalid, "%w: compatibility strategy %q is unknown", ErrPolicy, p.Compatibility)
	}
	if err := checkPermissions(p.Permissions); err != nil {
		return err
	}
	for name, value := range p.Kafka {
		if err := checkKafkaConfig(name, value, limits); err != nil {
			return err
		}
	}
	return checkProperties(p.Properties)
}

func checkPermissions(permissions map[string][]Action) error {
	if len(permissions) > maxRoles {
		return errs.Newf(errs.TooLarge, "%w: more than %d roles", ErrTooMuchData, maxRoles)
	}
	for role, granted := range permissions {
		if role == "" || len(role) > maxRoleName {
			return errs.Newf(errs.Invalid, "%w: role name is empty or longer than %d bytes", ErrPolicy, maxRoleName)
		}
		for _, a := range granted {
			if !slices.Contains(actions, a) {
				return errs.Newf(errs.Invalid, "%w: action %q is unknown", ErrPolicy, a)
			}
		}
	}
	return nil
}

func checkProperties(properties map[string]string) error {
	size := 0
	for k, v := range properties {
		if k == "" {
			return errs.Newf(errs.Invalid, "%w: property name is empty", ErrPolicy)
		}
		if _, known := parseStrategy(v); !known && (k == PropertyKeySubjects || k == PropertyValueSubjects) {
			return errs.Newf(errs.Invalid, "%w: %s: %q is not one of %s", ErrPolicy, k, v,
				strings.Join(subjectStrategies, ", "))
		}
		size += len(k) + len(v)
	}
	if size > maxPropertyBytes {
		return errs.Newf(errs.TooLarge, "%w: properties are over %d bytes", ErrTooMuchData, maxPropertyBytes)
	}
	return nil
}

// rules are the effective policies of one topic.
type rules struct {
	retention            Retention
	ttl                  time.Duration
	quota                BacklogQuota
	deduplicate          bool
	maxUnacked           int
	messageBytes         int
	delayedDelivery      bool
	strategy             Strategy
	validation           validation
	requireSchemaVersion bool
	kafka                kafkaRules
}

// boolOr returns *set, or before when set is nil.
func boolOr(set *bool, before bool) bool {
	if set != nil {
		return *set
	}
	return before
}

func (l *Limits) rules(namespace, topic *Policies) rules {
	r := rules{maxUnacked: l.MaxUnacked, messageBytes: l.MessageBytes}
	parse, validate := false, false
	for _, p := range [...]*Policies{defaults, namespace, topic} {
		if p == nil {
			continue
		}
		r.override(p)
		parse = boolOr(p.ParsePayload, parse)
		validate = boolOr(p.ValidatePayload, validate)
		r.requireSchemaVersion = boolOr(p.RequireSchemaVersion, r.requireSchemaVersion)
	}
	switch {
	case validate:
		r.validation = schemaValidated
	case parse:
		r.validation = syntaxValidated
	}
	return r
}

func (r *rules) override(p *Policies) {
	if p.Retention != nil {
		r.retention = *p.Retention
	}
	if p.TTLSeconds != nil {
		r.ttl = time.Duration(*p.TTLSeconds) * time.Second
	}
	if p.BacklogQuota != nil {
		r.quota = *p.BacklogQuota
	}
	if p.Deduplicate != nil {
		r.deduplicate = *p.Deduplicate
	}
	if p.MaxUnacked != nil && *p.MaxUnacked > 0 {
		r.maxUnacked = *p.MaxUnacked
	}
	if p.MaxMessageBytes != nil && *p.MaxMessageBytes > 0 {
		r.messageBytes = *p.MaxMessageBytes
	}
	if p.DelayedDelivery != nil {
		r.delayedDelivery = *p.DelayedDelivery
	}
	if p.Compatibility != "" && p.Compatibility != StrategyUndefined {
		r.strategy = p.Compatibility
	}
	r.kafka.override(p.Kafka)
}

// config returns the engine's configuration of a topic with these rules.
func (r *rules) config(t *topic) engine.TopicConfig {
	c := engine.TopicConfig{
		Partitions: max(t.partitions, 1),
		TTL:        r.ttl,
		MaxUnacked: r.maxUnacked,
		Terminated: t.terminated,
		// Always on: the broker decides for each message by setting a deduplication key or not, see
		// Message.dedupKey.
		Deduplicate: true,
	}
	c.RetainAge = time.Duration(r.retention.Minutes) * time.Minute
	c.RetainBytes = r.retention.Megabytes << 20
	if r.retention.Minutes < 0 {
		c.RetainAge = -1
	}
	if r.retention.Megabytes < 0 {
		c.RetainBytes = -1
	}
	r.kafka.configure(&c)
	if r.quota.Bytes > 0 {
		c.BacklogBytes, c.BacklogEvict = r.quota.Bytes, r.quota.Action == QuotaEvict
	}
	return c
}
