package messaging

import (
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Apply implements statemachine.State.
func (c *catalogueState) Apply(position uint64, b []byte) error {
	r, err := decodeRecord(b)
	if err != nil {
		return err
	}
	switch r.Op {
	case opSeed:
		c.seed()
		return nil
	case opTenant:
		if r.Tenant == nil {
			return incomplete(r)
		}
		c.tenants.Set(r.Tenant.Name, r.Tenant)
		return nil
	case opDropTenant:
		c.tenants.Delete(r.Name)
		for _, item := range c.groupsOf(r.Name) {
			c.groups.Delete(item)
		}
		return nil
	case opGroup:
		return c.applyGroup(r)
	case opNamespace, opDropNamespace, opConfiguredNamespace:
		return c.applyNamespace(position, r)
	case opCreateTopic:
		return c.applyCreateTopic(position, r)
	case opTopic, opDropTopic, opSchema, opDropSchemas, opConfigured:
		return c.applyTopic(position, r)
	}
	return fmt.Errorf("catalogue operation %q: %w", r.Op, engine.ErrNewerFormat)
}

func incomplete(r record) error {
	return errs.Newf(errs.Internal, "catalogue record %q is incomplete", r.Op)
}

func (c *catalogueState) seed() {
	c.seeded = true
	c.tenants.Set(names.DefaultTenant, &Tenant{Name: names.DefaultTenant})
	c.namespaces.Set(&namespace{name: names.PublicDefault, policies: &Policies{}})
}

func (c *catalogueState) applyNamespace(position uint64, r record) error {
	name, err := namespaceOfPath(r.Name)
	if err != nil {
		return err
	}
	old, ok := c.namespace(name)
	switch r.Op {
	case opNamespace:
		if r.Policies == nil {
			return incomplete(r)
		}
		ns := &namespace{name: name, policies: r.Policies}
		if ok {
			ns.topics, ns.pending = old.topics, old.pending
			if ns.topics > 0 && !sameForEngine(old.policies, r.Policies) {
				ns.pending = position
			}
		}
		c.namespaces.Set(ns)
	case opDropNamespace:
		c.namespaces.Delete(&namespace{name: name})
	case opConfiguredNamespace:
		if ok && old.pending == r.Position {
			ns := *old
			ns.pending = 0
			c.namespaces.Set(&ns)
		}
	}
	return nil
}

func (c *catalogueState) applyCreateTopic(position uint64, r record) error {
	name, err := topicOfPath(r.Name)
	if err != nil {
		return err
	}
	if r.Topic == nil {
		return incomplete(r)
	}
	t := &topic{
		id:         r.Topic.newID(position),
		name:       name,
		created:    r.At,
		partitions: r.Topic.Partitions,
		policies:   r.Topic.Policies,
	}
	if t.policies == nil {
		t.policies = noPolicies
	}
	c.setTopic(t)
	c.countTopics(name.Namespace, 1)
	return nil
}

// noPolicies is shared by the many topics without policies of their own.
var noPolicies = &Policies{}

func (c *catalogueState) applyTopic(position uint64, r record) error {
	old, ok := c.byID.Get(r.ID)
	if !ok {
		// Decisions are made on the state they are applied to, so this is not a lost race: the
		// journal is corrupt.
		return errs.Newf(errs.Internal, "catalogue record %q names topic %d, which does not exist", r.Op, r.ID)
	}
	t := *old
	switch r.Op {
	case opTopic:
		if r.Topic == nil {
			return incomplete(r)
		}
		policies := r.Topic.Policies
		if policies == nil {
			policies = noPolicies
		}
		if t.partitions != r.Topic.Partitions || t.terminated != r.Topic.Terminated ||
			!sameForEngine(t.policies, policies) {
			t.pending = position
		}
		t.partitions, t.terminated, t.policies = r.Topic.Partitions, r.Topic.Terminated, policies
	case opDropTopic:
		c.topics.Delete(topicItem{name: t.name})
		c.byID.Delete(t.id)
		c.countTopic(&t, -1)
		c.countTopics(t.name.Namespace, -1)
		return nil
	case opSchema:
		if r.Schema == nil {
			return incomplete(r)
		}
		t.schemas = t.schemas.with(r.Schema)
	case opDropSchemas:
		t.schemas = t.schemas.withoutVersions()
	case opConfigured:
		if t.pending == r.Position {
			t.pending = 0
		}
	}
	c.setTopic(&t)
	return nil
}

// sameForEngine reports whether two policies give the engine the same configuration.
func sameForEngine(a, b *Policies) bool {
	return equal(a.Retention, b.Retention) && equal(a.TTLSeconds, b.TTLSeconds) &&
		equal(a.BacklogQuota, b.BacklogQuota) && equal(a.MaxUnacked, b.MaxUnacked) &&
		sameConfigs(a.Kafka, b.Kafka, configRetentionMillis, configRetentionBytes, configCleanup)
}

// sameConfigs reports whether two topics set the named Kafka configurations to the same values.
func sameConfigs(a, b map[string]string, configs ...string) bool {
	for _, name := range configs {
		before, set := a[name]
		if after, still := b[name]; after != before || still != set {
			return false
		}
	}
	return true
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func isTrue(s string) bool { return strings.EqualFold(s, "true") }
