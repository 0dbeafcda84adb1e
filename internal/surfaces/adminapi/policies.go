package adminapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// policy is one policy of namespaces, topics or both.
type policy struct {
	namespace string // last path segment under a namespace, "" if namespaces do not have it
	topic     string // last path segment under a topic, "" if topics do not have it
	// get returns the value, nil if it is not set.
	get func(*messaging.Policies) any
	// defaultValue returns the value that applies if none is set.
	defaultValue func(*call) any
	// set decodes a value; nil clears it.
	set func(p *messaging.Policies, value json.RawMessage) error
	// query names a query parameter that may replace the body.
	query string
}

// fieldSetter returns the set function of a policy that is a pointer field.
func fieldSetter[T any](field func(*messaging.Policies) **T) func(*messaging.Policies, json.RawMessage) error {
	return func(p *messaging.Policies, raw json.RawMessage) error {
		if raw == nil {
			*field(p) = nil
			return nil
		}
		v := new(T)
		if err := json.Unmarshal(raw, v); err != nil {
			return brokerhttp.BadJSON(err)
		}
		*field(p) = v
		return nil
	}
}

func fieldGetter[T any](field func(*messaging.Policies) **T) func(*messaging.Policies) any {
	return func(p *messaging.Policies) any {
		if v := *field(p); v != nil {
			return *v
		}
		return nil
	}
}

func constant(v any) func(*call) any { return func(*call) any { return v } }

// brokerDefault returns a function that returns the broker's default.
func brokerDefault(get func(*messaging.Policies) any) func(*call) any {
	return constant(get(messaging.DefaultPolicies()))
}

func ttlField(p *messaging.Policies) **int64     { return &p.TTLSeconds }
func dedupField(p *messaging.Policies) **bool    { return &p.Deduplicate }
func unackedField(p *messaging.Policies) **int   { return &p.MaxUnacked }
func sizeField(p *messaging.Policies) **int      { return &p.MaxMessageBytes }
func validateField(p *messaging.Policies) **bool { return &p.ValidatePayload }
func parseField(p *messaging.Policies) **bool    { return &p.ParsePayload }
func versionField(p *messaging.Policies) **bool  { return &p.RequireSchemaVersion }
func updatesField(p *messaging.Policies) **bool  { return &p.AllowSchemaUpdates }
func maxTopicsField(p *messaging.Policies) **int { return &p.MaxTopics }
func clustersOf(p *messaging.Policies) []string  { return p.Clusters }
func (c *call) unackedLimit() any                { return c.Cluster.Limits.MaxUnacked }
func (c *call) messageLimit() any                { return c.Cluster.Limits.MessageBytes }
func (c *call) ownCluster() any                  { return c.clusterNames()[:1] }

// policies are all policies.
var policies = []policy{
	{"retention", "retention", getRetention, brokerDefault(getRetention), setRetention, ""},
	{
		"messageTTL", "messageTTL", fieldGetter(ttlField), brokerDefault(fieldGetter(ttlField)), fieldSetter(ttlField),
		"messageTTL",
	},
	{
		"deduplication", "deduplicationEnabled", fieldGetter(dedupField), brokerDefault(fieldGetter(dedupField)),
		fieldSetter(dedupField), "",
	},
	{"backlogQuota", "backlogQuota", getQuota, constant(map[string]any{}), setQuota, ""},
	{
		"maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription", fieldGetter(unackedField),
		(*call).unackedLimit,
		fieldSetter(unackedField), "",
	},
	{"", "maxMessageSize", fieldGetter(sizeField), (*call).messageLimit, fieldSetter(sizeField), ""},
	{"delayedDelivery", "delayedDelivery", getDelay, brokerDefault(getDelay), setDelay, ""},
	{
		"schemaCompatibilityStrategy", "schemaCompatibilityStrategy", getStrategy, brokerDefault(getStrategy),
		setStrategy, "",
	},
	{
		"schemaValidationEnforced", "schemaValidationEnforced", fieldGetter(validateField),
		brokerDefault(fieldGetter(validateField)),
		fieldSetter(validateField), "",
	},
	{
		"schemaSyntaxEnforced", "schemaSyntaxEnforced", fieldGetter(parseField), brokerDefault(fieldGetter(parseField)),
		fieldSetter(parseField), "",
	},
	{
		"schemaVersionEnforced", "schemaVersionEnforced", fieldGetter(versionField),
		brokerDefault(fieldGetter(versionField)),
		fieldSetter(versionField), "",
	},
	{
		"isAllowAutoUpdateSchema", "", fieldGetter(updatesField), brokerDefault(fieldGetter(updatesField)),
		fieldSetter(updatesField), "",
	},
	{"autoTopicCreation", "", getAuto, brokerDefault(getAuto), setAuto, ""},
	{
		"maxTopicsPerNamespace", "", fieldGetter(maxTopicsField), brokerDefault(fieldGetter(maxTopicsField)),
		fieldSetter(maxTopicsField), "",
	},
	{"replication", "", getClusters, (*call).ownCluster, setClusters, ""},
}

// policyRoutes returns GET, POST, PUT and DELETE routes for every policy.
func policyRoutes() []route {
	var routes []route
	for i := range policies {
		p := &policies[i]
		for _, level := range []struct{ path, leaf, resource string }{
			{namespacePath, p.namespace, "namespaces"},
			{topicPath, p.topic, "topics"},
		} {
			if level.leaf == "" {
				continue
			}
			pattern := level.path + "/" + level.leaf
			change := func(c *call) error { return c.setPolicy(p) }
			routes = append(routes,
				get(pattern, need(level.resource, "describe"), func(c *call) error { return c.getPolicy(p) }),
				post(pattern, need(level.resource, "update"), change),
				put(pattern, need(level.resource, "update"), change),
				remove(pattern, need(level.resource, "update"), func(c *call) error { return c.clearPolicy(p) }),
			)
		}
	}
	return append(routes, get(namespacePath+"/backlogQuotaMap", need("namespaces", "describe"),
		func(c *call) error { return c.getPolicy(quotaPolicy()) }))
}

func quotaPolicy() *policy {
	for i := range policies {
		if policies[i].namespace == "backlogQuota" {
			return &policies[i]
		}
	}
	panic("adminapi: policy backlogQuota is missing from the table of policies")
}

// getPolicy responds with a policy: for a namespace with the value that applies, for a
// topic with the value set on the topic, or with applied=true with the value that applies.
func (c *call) getPolicy(p *policy) error {
	if c.Topic.Local != "" {
		t, err := c.Cluster.Catalogue.Topic(c.R.Context(), c.Topic)
		if err != nil {
			return err
		}
		if v := p.get(t.Policies); v != nil || !c.queryFlag("applied") {
			return c.JSON(http.StatusOK, v)
		}
	}
	ns, err := c.Cluster.Catalogue.Namespace(c.R.Context(), c.Namespace)
	if err != nil {
		return err
	}
	v := p.get(ns)
	if v == nil {
		v = p.defaultValue(c)
	}
	return c.JSON(http.StatusOK, v)
}

func (c *call) setPolicy(p *policy) error {
	var raw json.RawMessage
	ok, err := c.Decode(&raw, maxAdminBody)
	if err != nil {
		return err
	}
	if !ok && p.query != "" {
		if text := c.R.URL.Query().Get(p.query); text != "" {
			raw, ok = json.RawMessage(text), true
		}
	}
	if !ok {
		return brokerhttp.BadBody("the new value is missing")
	}
	if kind := c.R.URL.Query().Get("backlogQuotaType"); kind != "" && kind != quotaBySize {
		return errs.Newf(errs.Invalid, "%w: backlog quota %q is not supported, only %s", messaging.ErrPolicy,
			kind, quotaBySize)
	}
	return c.changePolicy(func(policies *messaging.Policies) error { return p.set(policies, raw) })
}

func (c *call) clearPolicy(p *policy) error {
	return c.changePolicy(func(policies *messaging.Policies) error { return p.set(policies, nil) })
}

func (c *call) changePolicy(change func(*messaging.Policies) error) error {
	if c.Topic.Local != "" {
		return c.done(c.Cluster.Catalogue.UpdateTopic(c.R.Context(), c.Topic, change))
	}
	return c.done(c.updateNamespace(change))
}

// retentionBody is Pulsar's RetentionPolicies.
type retentionBody struct {
	Minutes   int64 `json:"retentionTimeInMinutes"`
	Megabytes int64 `json:"retentionSizeInMB"`
}

func getRetention(p *messaging.Policies) any {
	if p.Retention == nil {
		return nil
	}
	return retentionBody{p.Retention.Minutes, p.Retention.Megabytes}
}

func setRetention(p *messaging.Policies, raw json.RawMessage) error {
	var body *retentionBody
	if err := unmarshal(raw, &body); err != nil {
		return err
	}
	if p.Retention = nil; body != nil {
		p.Retention = &messaging.Retention{Minutes: body.Minutes, Megabytes: body.Megabytes}
	}
	return nil
}

// unmarshal decodes raw into v; nil leaves v unchanged.
func unmarshal(raw json.RawMessage, v any) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return brokerhttp.BadJSON(err)
	}
	return nil
}

const quotaBySize = "destination_storage"

// quotaBody is Pulsar's BacklogQuota. limit is the old name of limitSize.
type quotaBody struct {
	Limit     *int64                `json:"limit,omitempty"`
	LimitSize *int64                `json:"limitSize,omitempty"`
	LimitTime *int64                `json:"limitTime,omitempty"`
	Policy    messaging.QuotaAction `json:"policy"`
}

func getQuota(p *messaging.Policies) any {
	if p.BacklogQuota == nil {
		return nil
	}
	size, never := p.BacklogQuota.Bytes, int64(-1)
	return map[string]quotaBody{
		quotaBySize: {Limit: &size, LimitSize: &size, LimitTime: &never, Policy: p.BacklogQuota.Action},
	}
}

func setQuota(p *messaging.Policies, raw json.RawMessage) error {
	var body *quotaBody
	if err := unmarshal(raw, &body); err != nil {
		return err
	}
	if p.BacklogQuota = nil; body == nil {
		return nil
	}
	size := body.LimitSize
	if size == nil {
		size = body.Limit
	}
	if size == nil {
		return brokerhttp.BadBody("limitSize is missing")
	}
	p.BacklogQuota = &messaging.BacklogQuota{Bytes: *size, Action: body.Policy}
	return nil
}

const delayTick = 1000

// delayBody is Pulsar's DelayedDeliveryPolicies.
type delayBody struct {
	Active   bool  `json:"active"`
	TickTime int64 `json:"tickTime"`
}

func getDelay(p *messaging.Policies) any {
	if p.DelayedDelivery == nil {
		return nil
	}
	return delayBody{*p.DelayedDelivery, delayTick}
}

func setDelay(p *messaging.Policies, raw json.RawMessage) error {
	var body *delayBody
	if err := unmarshal(raw, &body); err != nil {
		return err
	}
	if p.DelayedDelivery = nil; body != nil {
		p.DelayedDelivery = &body.Active
	}
	return nil
}

func getStrategy(p *messaging.Policies) any {
	if p.Compatibility == "" || p.Compatibility == messaging.StrategyUndefined {
		return nil
	}
	return p.Compatibility
}

func setStrategy(p *messaging.Policies, raw json.RawMessage) error {
	p.Compatibility = ""
	return unmarshal(raw, &p.Compatibility)
}

const (
	topicPlain       = "non-partitioned"
	topicPartitioned = "partitioned"
)

// autoBody is Pulsar's AutoTopicCreationOverride.
type autoBody struct {
	Allow      bool   `json:"allowAutoTopicCreation"`
	Type       string `json:"topicType,omitempty"`
	Partitions int32  `json:"defaultNumPartitions,omitempty"`
}

func getAuto(p *messaging.Policies) any {
	a := p.AutoTopicCreation
	switch {
	case a == nil:
		return nil
	case a.Partitions > 0:
		return autoBody{a.Allow, topicPartitioned, a.Partitions}
	}
	return autoBody{Allow: a.Allow, Type: topicPlain}
}

func setAuto(p *messaging.Policies, raw json.RawMessage) error {
	var body *autoBody
	if err := unmarshal(raw, &body); err != nil {
		return err
	}
	if p.AutoTopicCreation = nil; body == nil {
		return nil
	}
	auto := &messaging.AutoCreation{Allow: body.Allow}
	switch strings.ToLower(body.Type) {
	case "", topicPlain:
		if body.Partitions > 0 && body.Type != "" {
			return errs.Newf(errs.Invalid, "%w: defaultNumPartitions needs topicType partitioned", messaging.ErrPolicy)
		}
	case topicPartitioned:
		if auto.Partitions = body.Partitions; auto.Partitions <= 0 {
			return errs.Newf(errs.Invalid, "%w: defaultNumPartitions must be more than 0", messaging.ErrPolicy)
		}
	default:
		return errs.Newf(errs.Invalid, "%w: topicType %s is unknown; use partitioned or non-partitioned",
			messaging.ErrPolicy, strconv.Quote(body.Type))
	}
	p.AutoTopicCreation = auto
	return nil
}

func getClusters(p *messaging.Policies) any {
	if list := clustersOf(p); len(list) > 0 {
		return list
	}
	return nil
}

func setClusters(p *messaging.Policies, raw json.RawMessage) error {
	p.Clusters = nil
	return unmarshal(raw, &p.Clusters)
}
