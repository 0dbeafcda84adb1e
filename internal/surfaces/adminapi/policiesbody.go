package adminapi

import (
	"encoding/json"

	"freshet/internal/broker/messaging"
)

// policiesBody has the fields of Pulsar's Policies that this server supports. Other
// fields are ignored.
type policiesBody struct {
	AuthPolicies *struct {
		Namespace map[string][]messaging.Action `json:"namespace_auth"`
	} `json:"auth_policies"`
	Clusters      []string              `json:"replication_clusters"`
	Retention     json.RawMessage       `json:"retention_policies"`
	TTL           *int64                `json:"message_ttl_in_seconds"`
	Quotas        map[string]*quotaBody `json:"backlog_quota_map"`
	Deduplication *bool                 `json:"deduplicationEnabled"`
	Auto          json.RawMessage       `json:"autoTopicCreationOverride"`
	Delay         json.RawMessage       `json:"delayed_delivery_policies"`
	Unacked       *int                  `json:"max_unacked_messages_per_subscription"`
	MaxTopics     *int                  `json:"max_topics_per_namespace"`
	Strategy      messaging.Strategy    `json:"schema_compatibility_strategy"`
	Validate      *bool                 `json:"schema_validation_enforced"`
	Syntax        *bool                 `json:"schema_syntax_enforced"`
	NameVersion   *bool                 `json:"schema_version_enforced"`
	Updates       *bool                 `json:"is_allow_auto_update_schema"`
	Properties    map[string]string     `json:"properties"`
}

func (b *policiesBody) policies() (messaging.Policies, error) {
	p := messaging.Policies{
		Clusters: b.Clusters, TTLSeconds: b.TTL, Deduplicate: b.Deduplication, Compatibility: b.Strategy,
		ValidatePayload: b.Validate, ParsePayload: b.Syntax, RequireSchemaVersion: b.NameVersion,
		AllowSchemaUpdates: b.Updates, Properties: b.Properties,
	}
	// Pulsar's clients send zero for values that are not set.
	if b.TTL != nil && *b.TTL <= 0 {
		p.TTLSeconds = nil
	}
	if b.Unacked != nil && *b.Unacked > 0 {
		p.MaxUnacked = b.Unacked
	}
	if b.MaxTopics != nil && *b.MaxTopics > 0 {
		p.MaxTopics = b.MaxTopics
	}
	if b.AuthPolicies != nil {
		p.Permissions = renderPermissions(b.AuthPolicies.Namespace)
	}
	for _, part := range []struct {
		raw json.RawMessage
		set func(*messaging.Policies, json.RawMessage) error
	}{{b.Retention, setRetention}, {b.Auto, setAuto}, {b.Delay, setDelay}} {
		if err := part.set(&p, part.raw); err != nil {
			return p, err
		}
	}
	if q := b.Quotas[quotaBySize]; q != nil {
		raw, err := json.Marshal(q)
		if err != nil {
			return p, err
		}
		if err := setQuota(&p, raw); err != nil {
			return p, err
		}
	}
	return p, nil
}

// renderPolicies returns a namespace's policies in Pulsar's form: values that are not
// set are null, except those that every Pulsar client expects.
func (c *call) renderPolicies(p *messaging.Policies) map[string]any {
	clusters := p.Clusters
	if len(clusters) == 0 {
		clusters = c.clusterNames()[:1]
	}
	strategy := p.Compatibility
	if strategy == "" {
		strategy = messaging.StrategyUndefined
	}
	quotas := getQuota(p)
	if quotas == nil {
		quotas = map[string]any{}
	}
	return map[string]any{
		"auth_policies": map[string]any{
			"namespace_auth":          renderPermissions(p.Permissions),
			"destination_auth":        map[string]any{},
			"subscription_auth_roles": map[string]any{},
		},
		"replication_clusters": clusters,
		"bundles": map[string]any{
			"boundaries": []string{"0x00000000", "0xffffffff"}, "numBundles": 1,
		},
		"backlog_quota_map":                     quotas,
		"retention_policies":                    getRetention(p),
		"message_ttl_in_seconds":                p.TTLSeconds,
		"deduplicationEnabled":                  p.Deduplicate,
		"autoTopicCreationOverride":             getAuto(p),
		"delayed_delivery_policies":             getDelay(p),
		"max_unacked_messages_per_subscription": p.MaxUnacked,
		"max_topics_per_namespace":              p.MaxTopics,
		"schema_compatibility_strategy":         strategy,
		"schema_validation_enforced":            p.ValidatePayload != nil && *p.ValidatePayload,
		"schema_syntax_enforced":                p.ParsePayload != nil && *p.ParsePayload,
		"schema_version_enforced":               p.RequireSchemaVersion != nil && *p.RequireSchemaVersion,
		"is_allow_auto_update_schema":           p.AllowSchemaUpdates == nil || *p.AllowSchemaUpdates,
		"properties":                            orEmpty(p.Properties),
		"deleted":                               false,
	}
}
