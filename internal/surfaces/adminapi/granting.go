package adminapi

import (
	"slices"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// To grant permissions inside a cluster, a caller needs the permissions that the grant
// conveys and the permission to manage the resource. These checks run inside the
// update of the catalog, so that they compare with the stored state. The update may be
// retried, so a check may run more than once, and it must not block.

// authorizeAdminChange checks that the caller may change a tenant's administrators. Removing
// one only needs the permission to manage the tenant.
func (c *call) authorizeAdminChange(before, after []string) error {
	added := slices.ContainsFunc(after, func(role string) bool { return !slices.Contains(before, role) })
	removed := slices.ContainsFunc(before, func(role string) bool { return !slices.Contains(after, role) })
	if !added && !removed {
		return nil
	}
	if err := c.AuthorizeGrant("messaging.tenants.manage"); err != nil || !added {
		return err
	}
	return c.AuthorizeGrant(messaging.TenantAdminPermissions()...)
}

// authorizeActions checks that the caller may grant a role these actions on a namespace
// or topic.
func (c *call) authorizeActions(before, after []messaging.Action, manage access.Permission) error {
	if err := c.AuthorizeGrant(manage); err != nil {
		return err
	}
	for _, action := range after {
		if slices.Contains(before, action) {
			continue
		}
		if conveyed, ok := action.Permission(); ok {
			if err := c.AuthorizeGrant(conveyed); err != nil {
				return err
			}
		}
	}
	return nil
}

// grant grants actions on the namespace or topic of the path to the role of the path.
func (c *call) grant(p *messaging.Policies, granted []messaging.Action) error {
	manage := access.Permission("messaging.namespaces.manage")
	if c.Topic.Local != "" {
		manage = "messaging.topics.manage"
	}
	role := c.param("role")
	if err := c.authorizeActions(p.Permissions[role], granted, manage); err != nil {
		return err
	}
	p.Grant(role, granted)
	return nil
}
