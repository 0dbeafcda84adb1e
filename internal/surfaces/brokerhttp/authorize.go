package brokerhttp

import (
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/identity/access"
)

// The permissions to produce and to consume messages.
const (
	PermitProduce = access.Permission("messaging.topics.produce")
	PermitConsume = access.Permission("messaging.topics.consume")
)

// Scope returns the scope of the resource that the path names, for the authorizer.
func (c *Call) Scope() access.Scope {
	s := c.Cluster.Scope
	switch {
	case c.Topic.Local != "":
		s = access.TopicScope(s, c.Topic)
		s.Subscription = c.Subscription
	case c.Namespace.Name != "":
		s.Tenant, s.Namespace = c.Namespace.Tenant, c.Namespace.Name
	default:
		// A consumer group can read any topic of its tenant. Its name is checked like
		// that of a subscription.
		s.Tenant, s.Subscription = c.Tenant, c.Group
	}
	return s
}

// Require checks that the caller has one of the wanted permissions. It returns the denial
// of the first one if it has none of them.
func (c *Call) Require(permissions ...access.Permission) error {
	scope := c.Scope()
	var denial error
	for _, p := range permissions {
		c.Authorization.Permission = p
		decision, err := c.authorize(p, scope)
		if err == nil {
			c.Authorization.Decision = decision
			return nil
		}
		if errs.KindOf(err) != errs.Denied {
			return err
		}
		if denial == nil {
			denial = err
		}
	}
	c.Authorization.Permission = permissions[0]
	return denial
}

// Has reports whether the caller has a permission. Unlike Require, it does not change
// the permission in the audit record.
func (c *Call) Has(p access.Permission) bool {
	_, err := c.authorize(p, c.Scope())
	return err == nil
}

// HasOn reports whether the caller has a permission on a resource of the cluster. A denial is false, not an error.
func (c *Call) HasOn(p access.Permission, scope access.Scope) (bool, error) {
	_, err := c.authorize(p, scope)
	if err != nil && errs.KindOf(err) == errs.Denied {
		return false, nil
	}
	return err == nil, err
}

func (c *Call) authorize(p access.Permission, scope access.Scope) (access.Decision, error) {
	return access.AuthorizeTopic(c.R.Context(), c.Surface.Authorizer, c.Cluster.Grants, c.Principal, p, scope)
}

// AuthorizeGrant checks that the caller has all permissions that a grant conveys, on the
// resource that the path names. Otherwise granting would be privilege escalation. It
// does not change the call, so that it can run inside a catalog update.
func (c *Call) AuthorizeGrant(permissions ...access.Permission) error {
	for _, p := range permissions {
		if _, err := c.authorize(p, c.Scope()); err != nil {
			return access.AsEscalation(err)
		}
	}
	return nil
}

// RecordDenial puts the permission of a denial into the call's audit record, and returns
// err unchanged.
func (c *Call) RecordDenial(err error) error {
	var denied *access.Denial
	if errors.As(err, &denied) {
		c.Authorization.Permission, c.Authorization.Decision = denied.Permission, access.Decision{}
	}
	return err
}

// Audit implements pipeline.Steps. The scope in the record is that of the names in the path.
func (c *Call) Audit(err error, status int) {
	if c.Cluster.Grants != nil {
		c.Authorization.Scope = c.Scope()
	}
	c.Call.Audit(err, status)
}
