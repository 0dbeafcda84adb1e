package brokerhttp

import (
	"errors"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/pipeline"
)

// The permissions of those who move messages.
const (
	PermitProduce = access.Permission("messaging.topics.produce")
	PermitConsume = access.Permission("messaging.topics.consume")
)

// byCluster is what decides when the cluster's own permissions do.
const byCluster access.By = "cluster permission"

// Scope is what the path names, for access.
func (c *Call) Scope() access.Scope {
	s := c.Cluster.Scope
	switch {
	case c.Topic.Local != "":
		s.Tenant, s.Namespace = c.Topic.Namespace.Tenant, c.Topic.Namespace.Name
		s.TopicDomain, s.Topic, s.Subscription = string(names.Persistent), c.Topic.Local, c.Subscription
	case c.Namespace.Name != "":
		s.Tenant, s.Namespace = c.Namespace.Tenant, c.Namespace.Name
	default:
		// A group reads any topic of its tenant, and its name is asked for like
		// that of a subscription.
		s.Tenant, s.Subscription = c.Tenant, c.Group
	}
	return s
}

// Authorize asks for permissions; any one of them will do.
func (c *Call) Authorize(wanted ...access.Permission) error {
	scope := c.Scope()
	var denial error
	for _, p := range wanted {
		c.permission = p
		decision, err := c.Options.Authorizer.Authorize(c.R.Context(), c.Principal, p, scope)
		if err == nil {
			c.decision = decision
			return nil
		}
		if errs.KindOf(err) != errs.Denied {
			return err
		}
		if denial == nil {
			denial = err
		}
		if c.granted(p) {
			c.decision = access.Decision{Allowed: true, By: byCluster}
			return nil
		}
	}
	c.permission = wanted[0]
	return denial
}

// Has says whether the caller has one more permission, without making it the
// one that the call is recorded with.
func (c *Call) Has(p access.Permission) bool {
	_, err := c.Options.Authorizer.Authorize(c.R.Context(), c.Principal, p, c.Scope())
	return err == nil || c.granted(p)
}

// granted asks the permissions that the cluster itself keeps, as Pulsar's admin
// API sets them. They are for callers of the cluster's own organization only.
func (c *Call) granted(p access.Permission) bool {
	who, scope := c.Principal, &c.Cluster.Scope
	if who.Organization != scope.Organization || who.Instance != "" && who.Instance != scope.Instance {
		return false
	}
	role := who.Name
	if who.ServiceAccount != "" {
		role = messaging.RoleOf(who.ServiceAccount, who.Organization) // whatever the server's address is
	}
	switch {
	case p == PermitProduce && c.Topic.Local != "":
		return c.Broker().Grants(role, c.Topic, messaging.ActionProduce)
	case p == PermitConsume && c.Topic.Local != "":
		return c.Broker().Grants(role, c.Topic, messaging.ActionConsume)
	}
	// A tenant's administrators rule what is in it, but not the tenant itself.
	tenant := c.Topic.Namespace.Tenant
	if tenant == "" {
		tenant = c.Namespace.Tenant
	}
	if tenant == "" && c.Group != "" {
		tenant = c.Tenant
	}
	return tenant != "" && slices.Contains(messaging.TenantAdminPermissions(), p) &&
		c.Broker().Administers(role, tenant)
}

// MayGrant reports whether the caller has all of what a grant conveys, on what
// the path names: nobody can grant what they do not have. It changes nothing, so
// that it can be asked inside a change of the catalogue.
func (c *Call) MayGrant(conveyed ...access.Permission) error {
	for _, p := range conveyed {
		_, err := c.Options.Authorizer.Authorize(c.R.Context(), c.Principal, p, c.Scope())
		if err == nil || errs.KindOf(err) == errs.Denied && c.granted(p) {
			continue
		}
		return access.NotToGrant(err)
	}
	return nil
}

// Refused makes the permission that a call was refused for the one that it is
// recorded with.
func (c *Call) Refused(err error) error {
	var denied *access.Denial
	if errors.As(err, &denied) {
		c.permission, c.decision = denied.Permission, access.Decision{}
	}
	return err
}

// Audit records the call with the status of its response.
func (c *Call) Audit(status int) {
	asked := pipeline.Asked{Permission: c.permission, Decision: c.decision}
	if c.Cluster.Broker != nil {
		asked.Scope = c.Scope()
	}
	c.Options.Auditor.Record(pipeline.Record(c.R, Surface, c.Principal, asked, status))
}
