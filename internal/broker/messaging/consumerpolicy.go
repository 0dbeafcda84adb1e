package messaging

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

// consumerPolicy is the part of a subscription's properties that the broker acts on.
type consumerPolicy struct {
	lease        time.Duration
	deadLetters  bool
	redeliveries uint32
	topic        string // dead-letter topic; "" for the default
	filter       string
}

const maxRedeliveries = 1_000_000

func (c *Consumer) parsePolicy(properties map[string]string) (consumerPolicy, error) {
	var p consumerPolicy
	if err := checkProperties(properties); err != nil {
		return p, err
	}
	if text, ok := properties[PropertyAckTimeout]; ok {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 1 || ms > c.limits.MaxLease.Milliseconds() {
			return p, errs.Newf(errs.Invalid, "%w: %s must be a number of milliseconds up to %d", ErrPolicy,
				PropertyAckTimeout, c.limits.MaxLease.Milliseconds())
		}
		p.lease = time.Duration(ms) * time.Millisecond
		if err := c.checkLease(p.lease); err != nil {
			return p, err
		}
	}
	p.filter = properties[PropertyFilter]
	if err := checkFilter(p.filter); err != nil {
		return p, err
	}
	p.topic = properties[PropertyDeadLetterTopic]
	if text, ok := properties[PropertyMaxRedeliver]; ok {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n > maxRedeliveries {
			return p, errs.Newf(errs.Invalid, "%w: %s must be a number up to %d", ErrPolicy, PropertyMaxRedeliver,
				maxRedeliveries)
		}
		p.deadLetters, p.redeliveries = true, uint32(n)
	} else if p.topic != "" {
		return p, errs.Newf(errs.Invalid, "%w: %s needs %s", ErrPolicy, PropertyDeadLetterTopic, PropertyMaxRedeliver)
	}
	return p, nil
}

// checkFilter returns an error if a text is neither empty nor a valid filter.
func checkFilter(text string) error {
	if text == "" {
		return nil
	}
	_, err := filter.Compile(text)
	return err
}

// deadLetterName returns the dead-letter topic of a subscription. The default is
// <topic>-<subscription>-DLQ as in Pulsar.
func (p *consumerPolicy) deadLetterName(topic names.Topic, subscription string) (names.Topic, error) {
	if p.topic == "" {
		return names.Topic{Namespace: topic.Namespace, Local: topic.Local + "-" + subscription + "-DLQ"}, nil
	}
	name, err := names.ParseTopic(p.topic)
	if err != nil {
		return name, errs.Newf(errs.Invalid, "%w: %s: %w", ErrPolicy, PropertyDeadLetterTopic, err)
	}
	if name.Namespace != topic.Namespace {
		return name, errs.Newf(errs.Invalid, "%w: %s must be in the topic's own namespace", ErrPolicy,
			PropertyDeadLetterTopic)
	}
	return name, nil
}

// DeadLetters is the dead-letter topic of a subscription.
type DeadLetters struct {
	Topic  names.Topic
	Exists bool // otherwise setting the properties creates the topic
}

// DeadLetters returns the dead-letter topic of a subscription with such properties, or nil when the
// properties define none. The broker produces to that topic on behalf of the caller who sets the
// properties, so surfaces check that caller's permission to produce there first.
func (c *Consumer) DeadLetters(ctx context.Context, name names.Topic, subscription string,
	properties map[string]string,
) (*DeadLetters, error) {
	p, err := c.parsePolicy(properties)
	if err != nil || !p.deadLetters {
		return nil, err
	}
	state, err := c.catalogue.state.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	if t, ok := lookup(state, name); ok {
		name = t.name // a partition uses the dead-letter topic of its topic
	}
	to, err := p.deadLetterName(name, subscription)
	if err != nil {
		return nil, err
	}
	_, exists := lookup(state, to)
	return &DeadLetters{Topic: to, Exists: exists}, nil
}

// subscriptionConfig converts a policy to the engine's form. It creates the dead-letter topic.
func (c *Consumer) subscriptionConfig(ctx context.Context, t *topic, subscription string, p consumerPolicy,
	properties map[string]string,
) (engine.SubscriptionConfig, error) {
	config := engine.SubscriptionConfig{Lease: p.lease, Filter: p.filter, Properties: maps.Clone(properties)}
	if p.filter == "" {
		delete(config.Properties, PropertyFilter)
	}
	if !p.deadLetters {
		return config, nil
	}
	name, err := p.deadLetterName(t.name, subscription)
	if err != nil {
		return config, err
	}
	letters, err := c.catalogue.createTopic(ctx, name, true,
		func(*namespace) (topicRecord, error) { return c.catalogue.recordInShardOf(t), nil })
	if err != nil {
		return config, fmt.Errorf("creating the dead-letter topic %s: %w", name, err)
	}
	if letters.id == t.id || letters.partitions > 0 {
		return config, errs.Newf(errs.Invalid, "%w: %s must be another topic, without partitions", ErrPolicy,
			PropertyDeadLetterTopic)
	}
	config.DeadLetterTopic, config.MaxDeliveries = letters.id, p.redeliveries+1
	return config, nil
}
