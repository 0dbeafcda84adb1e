package messaging

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
)

// KafkaConfig is a topic configuration as the Kafka protocol reports it.
type KafkaConfig struct {
	Name      string
	Value     string
	Set       bool   // the topic itself sets it
	Default   string // effective value if the topic does not set it
	Inherited bool   // Default comes from policies of the topic, its namespace or the cluster
	ReadOnly  bool
	Kind      ConfigKind
	Doc       string
}

// Configs returns the effective configuration in order of the names.
func (t *KafkaTopic) Configs() []KafkaConfig {
	all := make([]KafkaConfig, 0, len(kafkaConfigs))
	for _, name := range slices.Sorted(maps.Keys(kafkaConfigs)) {
		config := kafkaConfigs[name]
		c := KafkaConfig{
			Name: name, Default: config.defaultValue, ReadOnly: config.fixed || name == configRouting,
			Kind: config.kind, Doc: kafkaConfigDocs[name],
		}
		if value, ok := t.inheritedConfig(name); ok {
			c.Default, c.Inherited = value, value != config.defaultValue
		}
		c.Value = c.Default
		if value, ok := t.topic.policies.Kafka[name]; ok {
			// A value that the topic got at its creation does not count as set.
			made, ok := t.topic.policies.creationDefault(name)
			c.Value, c.Set = value, !ok || value != made
			if ok {
				c.Default, c.Inherited = made, false
			}
		}
		all = append(all, c)
	}
	return all
}

// creationDefault returns the value of a configuration that topics created over the Kafka protocol get at
// their creation instead of the general default.
func (p *Policies) creationDefault(name string) (string, bool) {
	routing, made := p.Kafka[configRouting]
	switch {
	case !made:
		return "", false
	case name == configRouting:
		return routing, true
	case name == configRetentionBytes:
		return "-1", true
	}
	return "", false
}

// inheritedConfig returns the value that policies and properties give a configuration.
func (t *KafkaTopic) inheritedConfig(name string) (string, bool) {
	r := t.rules
	switch name {
	case configRetentionMillis:
		if r.retention.Minutes < 0 {
			return "-1", true
		}
		return strconv.FormatInt(r.retention.Minutes*60_000, 10), true
	case configRetentionBytes:
		if r.retention.Megabytes < 0 {
			return "-1", true
		}
		return strconv.FormatInt(r.retention.Megabytes<<20/int64(t.Partitions()), 10), true
	case PropertyKeyValidation, PropertyValueValidation:
		return strconv.FormatBool(isTrue(t.topic.policies.Properties[name])), true
	case PropertyKeySubjects, PropertyValueSubjects:
		value, ok := t.topic.policies.Properties[name]
		return value, ok
	}
	return "", false
}

// ConfigOp is an operation on a configuration.
type ConfigOp uint8

// The operations; the numbers are those of the Kafka protocol.
const (
	ConfigSet      ConfigOp = iota
	ConfigReset             // return to the default
	ConfigAppend            // add missing items to a list
	ConfigSubtract          // remove items from a list
)

// ConfigChange is one change of a topic's configuration.
type ConfigChange struct {
	Name  string
	Op    ConfigOp
	Value string
}

// AlterConfig changes single configurations of a topic. With dryRun it only validates them.
func (t *KafkaTopic) AlterConfig(ctx context.Context, changes []ConfigChange, dryRun bool) error {
	for i := range changes {
		if err := t.log.contracts.check(ctx, map[string]string{changes[i].Name: changes[i].Value}); err != nil {
			return err
		}
	}
	return t.editConfig(ctx, dryRun, func(p *Policies) error {
		for i := range changes {
			if err := p.alter(&changes[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReplaceConfig sets a topic's configurations to exactly these. All others return to their
// default. With dryRun it only validates them.
func (t *KafkaTopic) ReplaceConfig(ctx context.Context, config map[string]string, dryRun bool) error {
	if err := t.log.contracts.check(ctx, config); err != nil {
		return err
	}
	return t.editConfig(ctx, dryRun, func(p *Policies) error {
		for _, name := range slices.Sorted(maps.Keys(p.Kafka)) {
			if _, stays := config[name]; !stays && name != configRouting {
				if err := p.alter(&ConfigChange{Name: name, Op: ConfigReset}); err != nil {
					return err
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(config)) {
			if err := p.alter(&ConfigChange{Name: name, Value: config[name]}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *KafkaTopic) editConfig(ctx context.Context, dryRun bool, edit func(*Policies) error) error {
	if !dryRun {
		return t.log.catalogue.UpdateTopic(ctx, t.topic.name, edit)
	}
	policies := t.topic.policies.clone()
	if err := edit(&policies); err != nil {
		return err
	}
	return policies.validate(t.log.limits)
}

// alter applies one change. The caller validates the values after all changes.
func (p *Policies) alter(change *ConfigChange) error {
	name := change.Name
	config, known := kafkaConfigs[name]
	if !known && change.Op == ConfigReset {
		return nil // nothing is set
	}
	if !known {
		return errs.Newf(errs.Invalid, "%w: %s is not a topic configuration", ErrConfig, name)
	}
	value := change.Value
	switch change.Op {
	case ConfigSet:
	case ConfigReset:
		value = ""
	case ConfigAppend, ConfigSubtract:
		if config.kind != ConfigList {
			return errs.Newf(errs.Invalid, "%w: %s is not a list, so append and subtract do not apply; set it",
				ErrConfig, name)
		}
		current, ok := p.Kafka[name]
		if !ok {
			current = config.defaultValue
		}
		value = editList(current, change.Value, change.Op == ConfigAppend)
	default:
		return errs.Newf(errs.Invalid, "%w: %s: operation %d is unknown", ErrConfig, name, change.Op)
	}
	if name == configRouting {
		routing := p.Kafka[name]
		if change.Op != ConfigSet || value != routing && (routing != "" || value != routingMurmur3) {
			return errs.Newf(errs.Invalid, "%w: %s is fixed when the topic is created", ErrConfig, name)
		}
		return nil
	}
	p.put(name, value, change.Op == ConfigReset)
	return nil
}

// put stores a value, or with reset restores the topic's default.
func (p *Policies) put(name, value string, reset bool) {
	value = canonicalConfig(name, value)
	reset = reset || name == configRequire && value == ""
	if p.Kafka == nil {
		p.Kafka = make(map[string]string)
	}
	made, ok := p.creationDefault(name)
	switch {
	case reset && ok:
		p.Kafka[name] = made
	case reset:
		delete(p.Kafka, name)
	default:
		p.Kafka[name] = value
	}
	if !slices.Contains(linkedProperties, name) {
		return
	}
	// Keep the property of the same name consistent.
	if reset {
		delete(p.Properties, name)
		return
	}
	if p.Properties == nil {
		p.Properties = make(map[string]string)
	}
	p.Properties[name] = value
}

// editList adds the missing items of change to a comma-separated list, or removes them from it.
func editList(current, change string, add bool) string {
	var list []string
	has := func(item string) bool { return slices.Contains(list, item) }
	for item := range strings.SplitSeq(current, ",") {
		if item = strings.TrimSpace(item); item != "" && !has(item) {
			list = append(list, item)
		}
	}
	for item := range strings.SplitSeq(change, ",") {
		item = strings.TrimSpace(item)
		if !add {
			list = slices.DeleteFunc(list, func(s string) bool { return s == item })
		} else if !has(item) {
			list = append(list, item)
		}
	}
	return strings.Join(list, ",")
}
