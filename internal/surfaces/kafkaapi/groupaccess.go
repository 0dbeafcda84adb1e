package kafkaapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// Permissions on consumer groups (docs/spec/stream.md#permissions). Which callers may use a group depends on the topics
// that it reads, and these change. So the coordinator checks the permission while it holds the group's lock:
// groupCheck.may is called with the topics. It must not block. If it needs the name of a topic that is not in the
// cached catalogue, it returns an unresolvedError, and the call is repeated after the topic was looked up.

// groupRule is the permission that an operation on groups needs.
type groupRule struct {
	onGroup  []access.Permission // any one of them on the group itself
	onTopics []access.Permission // otherwise any one of them on each topic that the group reads
	// open means that callers who may consume something in the tenant may use a group that reads nothing yet.
	open bool
}

var (
	useGroup      = groupRule{[]access.Permission{permitConsume}, []access.Permission{permitConsume}, true}
	describeGroup = groupRule{
		[]access.Permission{permitConsume, permitSubscriptions}, []access.Permission{permitConsume}, false,
	}
	alterGroup = groupRule{
		[]access.Permission{permitUpdateSubscription, permitConsume},
		[]access.Permission{permitUpdateSubscription, permitConsume},
		false,
	}
	deleteGroup = groupRule{
		[]access.Permission{permitDeleteSubscription}, []access.Permission{permitDeleteSubscription}, false,
	}
)

// groupCheck decides about one operation on a group.
type groupCheck struct {
	ctx   context.Context //nolint:containedctx // context of the call
	call  *call
	rule  groupRule
	group access.Consumers // with the topics of the request
	named []names.Topic    // topics of the request, which become topics of the group
	// found are topics that were looked up; nil for deleted ones.
	found map[engine.TopicID]*names.Topic
}

// unresolvedError means that a check needs the names of topics that are not in the cached catalogue.
type unresolvedError struct{ ids []engine.TopicID }

// Error implements error.
func (e *unresolvedError) Error() string {
	return "topics of the group are not in the cached catalogue"
}

// groupScopeOf returns the scope of a group.
func (c *call) groupScopeOf(group string) access.Scope {
	scope := c.session.cluster.Scope
	scope.Tenant, scope.Subscription = c.session.namespace.Tenant, group
	return scope
}

// may decides about one permission, and caches what is granted.
func (c *call) may(ctx context.Context) func(access.Permission, access.Scope) (bool, error) {
	return func(p access.Permission, scope access.Scope) (bool, error) {
		requested := decision{tenant: scope.Tenant, group: scope.Subscription}
		if scope.Topic != "" {
			requested.tenant, requested.topic = "", names.Topic{
				Namespace: names.Namespace{Tenant: scope.Tenant, Name: scope.Namespace}, Local: scope.Topic,
			}
		}
		return c.decide(requested, []access.Permission{p}, func(p access.Permission) (bool, error) {
			return c.has(ctx, p, scope)
		})
	}
}

// onGroup calls act with the principal of the call and a check of its permission on a group. named are topics of
// the request that the group reads from then on; unknown means that there are others.
func (c *call) onGroup(ctx context.Context, name string, rule groupRule, named []names.Topic, unknown bool,
	act func(groups.Caller) error,
) error {
	ctx = access.WithBudget(ctx)
	check := &groupCheck{
		ctx: ctx, call: c, rule: rule, named: named, found: make(map[engine.TopicID]*names.Topic),
		group: access.Consumers{Scope: c.groupScopeOf(name), Unknown: unknown},
	}
	whole, err := (&access.Consumers{Scope: check.group.Scope}).MayUse(c.may(ctx), rule.onGroup)
	if err != nil {
		return err
	}
	caller := groups.Caller{Principal: access.PrincipalID(c.session.principal)}
	if !whole {
		if !c.maySomewhere(name, rule.onTopics) {
			return c.deniedGroup(rule, check.group.Scope)
		}
		caller.May = check.may
	}
	for {
		err := act(caller)
		var missing *unresolvedError
		switch {
		case errors.As(err, &missing):
			if err := check.lookUp(missing.ids); err != nil {
				return err
			}
		case errors.Is(err, groups.ErrDenied):
			return c.deniedGroup(rule, check.group.Scope)
		default:
			return err
		}
	}
}

func (c *call) deniedGroup(rule groupRule, scope access.Scope) error {
	c.auditDenied(rule.onGroup[0], scope)
	return errGroupDenied
}

// maySomewhere reports whether the caller may have one of the permissions on something in the tenant that a group
// with this name could read. It does not depend on whether the group exists.
func (c *call) maySomewhere(group string, wanted []access.Permission) bool {
	scope := c.groupScopeOf(group)
	requested := decision{tenant: scope.Tenant, group: group, somewhere: true}
	ok, _ := c.decide(requested, wanted, func(p access.Permission) (bool, error) {
		if filter := c.conn.server.opts.Policy.Filter(c.session.principal, p, scope); !filter.None() {
			return true, nil
		}
		return access.GrantedWithin(c.session.cluster.Grants, c.session.principal, p, scope), nil
	})
	return ok
}

// may implements groups.Caller.May.
func (k *groupCheck) may(reads groups.Reads) error {
	group := k.group
	group.Unknown = group.Unknown || reads.Unknown
	group.Topics = slices.Concat(k.named, reads.Topics)
	var missing []engine.TopicID
	for _, id := range reads.IDs {
		name, ok := k.call.session.cluster.Topics.TopicNameCached(id)
		found, known := k.found[id]
		switch {
		case ok:
			group.Topics = append(group.Topics, name)
		case known && found != nil:
			group.Topics = append(group.Topics, *found)
		case !known && !k.call.session.decisions.isGone(id):
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return &unresolvedError{missing}
	}
	for _, name := range reads.Names {
		group.Topics = append(group.Topics, k.call.possibleTopics(name)...)
	}
	if k.rule.open && len(group.Topics) == 0 && !group.Unknown {
		return nil
	}
	ok, err := group.MayUse(k.call.may(k.ctx), nil, k.rule.onTopics...)
	if err == nil && !ok {
		err = groups.ErrDenied
	}
	return err
}

// lookUp looks up topics that the cached catalogue does not have. It may block.
func (k *groupCheck) lookUp(ids []engine.TopicID) error {
	for _, id := range ids {
		topic, err := k.call.session.cluster.Topics.KafkaTopicByID(k.ctx, uint64(id))
		switch {
		case errors.Is(err, messaging.ErrNoTopic):
			k.found[id] = nil
			k.call.session.decisions.setGone(id)
		case err != nil:
			return err
		default:
			name := topic.Name()
			k.found[id] = &name
		}
	}
	return nil
}

// possibleTopics returns every topic that a name of a client can mean, whatever exists. An invalid name means
// none.
func (c *call) possibleTopics(clientName string) (topics []names.Topic) {
	if strings.Contains(clientName, "/") {
		if topic, err := names.ParseTopic(cut(clientName, 4*maxTopicName)); err == nil {
			topics = append(topics, topic)
		}
		return topics
	}
	if !names.IsKafkaTopic(clientName) {
		return nil
	}
	topics = append(topics, names.Topic{Namespace: c.session.namespace, Local: clientName})
	if elsewhere, ok := parseDottedName(clientName); ok {
		topics = append(topics, elsewhere)
	}
	return topics
}

// authorizeReads returns an error unless the caller has the permission of a rule on a group that reads these
// topics.
func (c *call) authorizeReads(ctx context.Context, name string, rule groupRule, reads groups.Reads) error {
	return c.onGroup(ctx, name, rule, nil, false, func(caller groups.Caller) error {
		if caller.May == nil {
			return nil
		}
		return caller.May(reads)
	})
}

// authorizeGroup returns an error unless the caller has the permission of a rule on a group. The answer for a group
// that does not exist is the same as for one that the caller has no permission on.
func (c *call) authorizeGroup(ctx context.Context, name string, rule groupRule) error {
	reads, err := c.coordinator().Reads(c.group(name))
	if err != nil {
		return err
	}
	return c.authorizeReads(ctx, name, rule, reads)
}

// authorizeCoordinator returns an error unless the caller may look up the coordinator of a group: if it may use
// or describe some group of that name. Only the coordinator knows the group, so the answer does not depend on it.
func (c *call) authorizeCoordinator(ctx context.Context, name string) error {
	whole, err := (&access.Consumers{Scope: c.groupScopeOf(name)}).MayUse(c.may(ctx), describeGroup.onGroup)
	if whole || err != nil || c.maySomewhere(name, describeGroup.onTopics) {
		return err
	}
	return c.deniedGroup(describeGroup, c.groupScopeOf(name))
}

// describe returns a group that the caller may describe.
func (c *call) describe(ctx context.Context, name string) (groups.Description, error) {
	d, err := c.coordinator().Describe(c.group(name))
	if err != nil && !errors.Is(err, groups.ErrNoGroup) {
		return groups.Description{}, err
	}
	if denied := c.authorizeReads(ctx, name, describeGroup, d.Reads); denied != nil {
		return groups.Description{}, denied
	}
	return d, err
}

// mayConsume reports whether the caller may consume a topic in a group. It does not audit a denial.
func (c *call) mayConsume(ctx context.Context, topic names.Topic, group string) bool {
	of := access.Consumers{Scope: c.groupScopeOf(group)}
	ok, err := c.may(ctx)(permitConsume, of.TopicScope(topic))
	return ok && err == nil
}

// subscribedName resolves a topic name of a subscription. A dotted name of a topic that the caller may not consume
// is the name of a topic in the default namespace, if the caller may consume that: so the caller cannot find out
// whether the other namespace exists.
func (c *call) subscribedName(ctx context.Context, clientName, group string) (names.Topic, error) {
	name, err := c.topicName(ctx, clientName)
	if err != nil || name.Namespace == c.session.namespace || strings.Contains(clientName, "/") ||
		c.mayConsume(ctx, name, group) {
		return name, err
	}
	if local := (names.Topic{Namespace: c.session.namespace, Local: clientName}); c.mayConsume(ctx, local, group) {
		return local, nil
	}
	return name, nil
}

// maxSubscriptionBytes bounds the metadata that is decoded for one member. The coordinator rejects more.
const maxSubscriptionBytes = 256 << 10

// subscribedTopics returns the topics that a joining classic member subscribes to. unknown means that its metadata
// is not that of a consumer, for example of a worker of Kafka Connect.
func (c *call) subscribedTopics(ctx context.Context, request *kmsg.JoinGroupRequest) (topics []names.Topic,
	unknown bool, err error,
) {
	if request.ProtocolType != consumerProtocol {
		return nil, true, nil
	}
	size := 0
	for i := range request.Protocols {
		size += len(request.Protocols[i].Metadata)
	}
	if size > maxSubscriptionBytes {
		return nil, true, nil
	}
	seen := make(map[string]bool)
	for i := range request.Protocols {
		clientNames, err := subscription(request.Protocols[i].Metadata)
		if err != nil {
			return nil, true, nil //nolint:nilerr // the topics cannot be known
		}
		for _, clientName := range clientNames {
			if seen[clientName] {
				continue
			}
			seen[clientName] = true
			if len(seen) > maxTopics {
				return nil, false, fmt.Errorf("%w: subscription lists more than %d topics", groups.ErrTooLarge,
					maxTopics)
			}
			topic, err := c.subscribedName(ctx, clientName, request.Group)
			switch {
			case err == nil:
				topics = append(topics, topic)
			case !errors.Is(err, messaging.ErrName): // such a topic cannot exist
				return nil, false, err
			}
		}
	}
	return groups.SortedTopics(topics), false, nil
}
