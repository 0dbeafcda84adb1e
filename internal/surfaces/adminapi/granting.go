package adminapi

import (
	"slices"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// Granting: whoever gives somebody something inside a cluster needs what the
// gift conveys, and the permission to manage. These checks run inside the change
// of the catalogue, so that what is added is decided against what is stored;
// they may run more than once and never block.

// mayChangeAdmins asks about a change of a tenant's administrators. Taking one
// away needs no more than to manage the tenant.
func (c *call) mayChangeAdmins(before, after []string) error {
	added := slices.ContainsFunc(after, func(role string) bool { return !slices.Contains(before, role) })
	removed := slices.ContainsFunc(before, func(role string) bool { return !slices.Contains(after, role) })
	if !added && !removed {
		return nil
	}
	if err := c.MayGrant("messaging.tenants.manage"); err != nil || !added {
		return err
	}
	return c.MayGrant(messaging.TenantAdminPermissions()...)
}

// mayGrantActions asks about actions that a role gets on a namespace or topic.
func (c *call) mayGrantActions(before, after []messaging.Action, manage access.Permission) error {
	if err := c.MayGrant(manage); err != nil {
		return err
	}
	for _, action := range after {
		if slices.Contains(before, action) {
			continue
		}
		if conveyed, ok := action.Conveys(); ok {
			if err := c.MayGrant(conveyed); err != nil {
				return err
			}
		}
	}
	return nil
}

// grant gives the role of the path actions on the namespace or topic of the path.
func (c *call) grant(p *messaging.Policies, granted []messaging.Action) error {
	manage := access.Permission("messaging.namespaces.manage")
	if c.Topic.Local != "" {
		manage = "messaging.topics.manage"
	}
	role := c.param("role")
	if err := c.mayGrantActions(p.Permissions[role], granted, manage); err != nil {
		return err
	}
	p.Grant(role, granted)
	return nil
}
