package kafkaapi

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/identity/access"
)

// Errors for denied permissions.
var (
	errTopicDenied   = errors.New("not allowed on this topic")
	errGroupDenied   = errors.New("not allowed on this consumer group")
	errClusterDenied = errors.New("not allowed on this cluster")
)

// The permissions that this surface checks (docs/spec/stream.md#permissions).
const (
	permitProduce  = access.Permission("messaging.topics.produce")
	permitConsume  = access.Permission("messaging.topics.consume")
	permitDescribe = access.Permission("messaging.topics.describe")
	permitCreate   = access.Permission("messaging.topics.create")
	permitUpdate   = access.Permission("messaging.topics.update")
	permitDelete   = access.Permission("messaging.topics.delete")

	permitSubscriptions      = access.Permission("messaging.subscriptions.describe")
	permitDeleteSubscription = access.Permission("messaging.subscriptions.delete")
	permitUpdateSubscription = access.Permission("messaging.subscriptions.update")

	permitListBindings    = access.Permission("cloud.rolebindings.list")
	permitDescribeCluster = access.Permission("cloud.messagingclusters.describe")
)

// describePermissions are the permissions of which any one allows a caller to describe a topic.
var describePermissions = []access.Permission{permitDescribe, permitProduce, permitConsume}

// authorizeTopic returns an error unless the caller has any one of the permissions on a topic.
func (c *call) authorizeTopic(ctx context.Context, topic names.Topic, wanted ...access.Permission) error {
	ok, err := c.decide(decision{topic: topic}, wanted, func(p access.Permission) (bool, error) {
		return c.has(ctx, p, c.topicScope(topic))
	})
	if ok || err != nil {
		return err
	}
	c.auditDenied(wanted[0], c.topicScope(topic))
	return errTopicDenied
}

// has reports whether the caller has a permission on a resource of the cluster. A denial is false,
// not an error.
func (c *call) has(ctx context.Context, p access.Permission, scope access.Scope) (bool, error) {
	_, err := access.AuthorizeTopic(ctx, c.conn.server.opts.Authorizer, c.session.cluster.Grants,
		c.session.principal, p, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		return false, nil
	}
	return err == nil, err
}

func (c *call) topicScope(topic names.Topic) access.Scope {
	return access.TopicScope(c.session.cluster.Scope, topic)
}

// authorizeCluster returns an error unless the caller has a permission on something in the cluster.
func (c *call) authorizeCluster(p access.Permission) error {
	scope := c.session.cluster.Scope
	if filter := c.conn.server.opts.Policy.Filter(c.session.principal, p, scope); !filter.None() {
		return nil
	}
	if access.GrantedWithin(c.session.cluster.Grants, c.session.principal, p, scope) {
		return nil
	}
	c.auditDenied(p, scope)
	return errClusterDenied
}
