package messaging

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
)

// StreamConfig is a configuration of a topic as the stream protocol shows it.
type StreamConfig struct {
	Name      string
	Value     string
	Set       bool   // by the topic itself
	Default   string // what is in force where the topic sets nothing
	Inherited bool   // Default comes from policies of the topic, its namespace or the cluster
	ReadOnly  bool
	Kind      ConfigKind
	Doc       string
}

// StreamConfigs returns the configuration in force, in the order of names.
func (t *StreamTopic) StreamConfigs() []StreamConfig {
	all := make([]StreamConfig, 0, len(streamConfigs))
	for _, name := range slices.Sorted(maps.Keys(streamConfigs)) {
		config := streamConfigs[name]
		c := StreamConfig{
			Name: name, Default: config.byDefault, ReadOnly: config.fixed || name == configRouting,
			Kind: config.kind, Doc: streamConfigDocs[name],
		}
		if value, ok := t.inheritedConfig(name); ok {
			c.Default, c.Inherited = value, value != config.byDefault
		}
		c.Value = c.Default
		if value, ok := t.topic.policies.Stream[name]; ok {
			// What a topic has from its making is not something that it sets.
			made, ok := t.topic.policies.madeWith(name)
			c.Value, c.Set = value, !ok || value != made
			if ok {
				c.Default, c.Inherited = made, false
			}
		}
		all = append(all, c)
	}
	return all
}

// madeWith returns the value that topics of the stream protocol have from their
// making on where others have another one.
func (p *Policies) madeWith(name string) (string, bool) {
	routing, made := p.Stream[configRouting]
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

// inheritedConfig is what policies in other words say.
func (t *StreamTopic) inheritedConfig(name string) (string, bool) {
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

// ConfigOp says what becomes of a configuration.
type ConfigOp uint8

// What can become of a configuration; the numbers are the protocol's.
const (
	ConfigSet      ConfigOp = iota
	ConfigReset             // back to what is in force where the topic sets nothing
	ConfigAppend            // add to a list what it does not have
	ConfigSubtract          // take out of a list
)

// ConfigChange is one change of a topic's configuration.
type ConfigChange struct {
	Name  string
	Op    ConfigOp
	Value string
}

// AlterStreamConfig changes the configuration of a topic. With dryRun nothing is
// changed.
func (t *StreamTopic) AlterStreamConfig(ctx context.Context, changes []ConfigChange, dryRun bool) error {
	return t.editConfig(ctx, dryRun, func(p *Policies) error {
		for i := range changes {
			if err := p.alter(&changes[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReplaceStreamConfig gives a topic exactly this configuration: what it set and
// what is not named goes back to the default. With dryRun nothing is changed.
func (t *StreamTopic) ReplaceStreamConfig(ctx context.Context, config map[string]string, dryRun bool) error {
	return t.editConfig(ctx, dryRun, func(p *Policies) error {
		for _, name := range slices.Sorted(maps.Keys(p.Stream)) {
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

func (t *StreamTopic) editConfig(ctx context.Context, dryRun bool, edit func(*Policies) error) error {
	if !dryRun {
		return t.b.UpdateTopic(ctx, t.topic.name, edit)
	}
	policies := t.topic.policies.clone()
	if err := edit(&policies); err != nil {
		return err
	}
	return policies.validate(&t.b.limits)
}

// alter makes one change. Values are checked when all are made.
func (p *Policies) alter(change *ConfigChange) error {
	name := change.Name
	config, known := streamConfigs[name]
	if !known {
		return errs.Newf(errs.Invalid, "%w: %s is no configuration of a topic", ErrConfig, name)
	}
	value := change.Value
	switch change.Op {
	case ConfigSet:
	case ConfigReset:
		value = ""
	case ConfigAppend, ConfigSubtract:
		if config.kind != ConfigList {
			return errs.Newf(errs.Invalid, "%w: %s is not a list, so nothing can be added to it or taken out; set it",
				ErrConfig, name)
		}
		current, ok := p.Stream[name]
		if !ok {
			current = config.byDefault
		}
		value = editList(current, change.Value, change.Op == ConfigAppend)
	default:
		return errs.Newf(errs.Invalid, "%w: %s: operation %d is not known", ErrConfig, name, change.Op)
	}
	if name == configRouting {
		routing := p.Stream[name]
		if change.Op != ConfigSet || value != routing && (routing != "" || value != routingMurmur3) {
			return errs.Newf(errs.Invalid, "%w: %s is fixed when a topic is made", ErrConfig, name)
		}
		return nil
	}
	p.put(name, value, change.Op == ConfigReset)
	return nil
}

// put stores a value, or the one that a topic has by itself.
func (p *Policies) put(name, value string, reset bool) {
	if p.Stream == nil {
		p.Stream = make(map[string]string)
	}
	made, ok := p.madeWith(name)
	switch {
	case reset && ok:
		p.Stream[name] = made
	case reset:
		delete(p.Stream, name)
	default:
		p.Stream[name] = value
	}
	if !slices.Contains(linked, name) {
		return
	}
	// The property of the same meaning is kept in step.
	if reset {
		delete(p.Properties, name)
		return
	}
	if p.Properties == nil {
		p.Properties = make(map[string]string)
	}
	p.Properties[name] = value
}

// editList adds to a list in text what it does not have, or takes out what it has.
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
