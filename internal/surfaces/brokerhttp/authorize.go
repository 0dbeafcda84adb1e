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

// The permissions to produce and to consume messages.
const (
	PermitProduce = access.Permission("messaging.topics.produce")
	PermitConsume = access.Permission("messaging.topics.consume")
)

// byCluster is the decision's source if the cluster's own permissions allowed a call.
const byCluster access.By = "cluster permission"

// Scope returns the scope of the resource that the path names, for the authorizer.
func (c *Call) Scope() access.Scope {
	s := c.Cluster.Scope
	switch {
	case c.Topic.Local != "":
		s.Tenant, s.Namespace = c.Topic.Namespace.Tenant, c.Topic.Namespace.Name
		s.TopicDomain, s.Topic, s.Subscription = string(names.Persistent), c.Topic.Local, c.Subscription
	case c.Namespace.Name != "":
		s.Tenant, s.Namespace = c.Namespace.Tenant, c.Namespace.Name
	default:
		// A consumer group can read any topic of its tenant. Its name is checked like
		// that of a subscription.
		s.Tenant, s.Subscription = c.Tenant, c.Group
	}
	return s
}

// Authorize checks that the caller has one of the wanted permissions. It returns the
// denial of the first one if it has none of them.
func (c *Call) Authorize(permissions ...access.Permission) error {
	scope := c.Scope()
	var denial error
	for _, p := range permissions {
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
		if c.clusterGrants(p) {
			c.decision = access.Decision{Allowed: true, By: byCluster}
			return nil
		}
	}
	c.permission = permissions[0]
	return denial
}

// Has reports whether the caller has a permission. Unlike Authorize, it does not change
// the permission in the audit record.
func (c *Call) Has(p access.Permission) bool {
	_, err := c.Options.Authorizer.Authorize(c.R.Context(), c.Principal, p, c.Scope())
	return err == nil || c.clusterGrants(p)
}

// clusterGrants reports whether the permissions that the cluster itself stores, which
// Pulsar's admin API sets, include p. They apply only to callers of the cluster's own
// organization.
func (c *Call) clusterGrants(p access.Permission) bool {
	principal, scope := c.Principal, &c.Cluster.Scope
	if principal.Organization != scope.Organization || principal.Instance != "" &&
		principal.Instance != scope.Instance {
		return false
	}
	role := principal.Name
	if principal.ServiceAccount != "" {
		role = messaging.FormatRole(principal.ServiceAccount, principal.Organization) // without the server's address
	}
	switch {
	case p == PermitProduce && c.Topic.Local != "":
		return c.Broker().Grants(role, c.Topic, messaging.ActionProduce)
	case p == PermitConsume && c.Topic.Local != "":
		return c.Broker().Grants(role, c.Topic, messaging.ActionConsume)
	}
	// A tenant's administrators manage the resources in it, but not the tenant itself.
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

// AuthorizeGrant checks that the caller has all permissions that a grant conveys, on the
// resource that the path names. Otherwise granting would be privilege escalation. It
// does not change the call, so that it can run inside a catalog update.
func (c *Call) AuthorizeGrant(permissions ...access.Permission) error {
	for _, p := range permissions {
		_, err := c.Options.Authorizer.Authorize(c.R.Context(), c.Principal, p, c.Scope())
		if err == nil || errs.KindOf(err) == errs.Denied && c.clusterGrants(p) {
			continue
		}
		return access.AsEscalation(err)
	}
	return nil
}

// RecordDenial puts the permission of a denial into the call's audit record, and returns
// err unchanged.
func (c *Call) RecordDenial(err error) error {
	var denied *access.Denial
	if errors.As(err, &denied) {
		c.permission, c.decision = denied.Permission, access.Decision{}
	}
	return err
}

// Audit writes the audit record of the call with the status of its response.
func (c *Call) Audit(status int) {
	authorization := pipeline.Authorization{Permission: c.permission, Decision: c.decision}
	if c.Cluster.Broker != nil {
		authorization.Scope = c.Scope()
	}
	c.Options.Auditor.Record(pipeline.Record(c.R, Surface, c.Principal, authorization, status))
}
