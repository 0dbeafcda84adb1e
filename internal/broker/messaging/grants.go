package messaging

import (
	"maps"
	"slices"
	"strings"

	"freshet/internal/base/names"
)

// A role in a list of permissions or of a tenant's administrators names an account as
// account@organization. A host may follow the organization, as in the client_email of a credentials
// file (account@organization.host:port): it is an earlier address of the server and is ignored.
// Roles are stored as written, so that tools read back what they wrote.

// ParseRole splits a role into account and organization. ok is false for a role that names no
// account.
func ParseRole(role string) (account, organization string, ok bool) {
	account, rest, ok := strings.Cut(role, "@")
	organization, _, _ = strings.Cut(rest, ".")
	return account, organization, ok && account != "" && organization != ""
}

// FormatRole returns the role that names an account.
func FormatRole(account, organization string) string { return account + "@" + organization }

// sameRole reports whether two roles name the same account.
func sameRole(a, b string) bool {
	if a == b {
		return true
	}
	account, organization, ok := ParseRole(a)
	if !ok {
		return false
	}
	otherAccount, otherOrganization, ok := ParseRole(b)
	return ok && account == otherAccount && organization == otherOrganization
}

// canonicalRole returns the same spelling for all roles that name the same account.
func canonicalRole(role string) string {
	if account, organization, ok := ParseRole(role); ok {
		return FormatRole(account, organization)
	}
	return role
}

// Grant replaces the actions of a role, under any spelling of its name.
func (p *Policies) Grant(role string, granted []Action) {
	p.Revoke(role)
	if p.Permissions == nil {
		p.Permissions = make(map[string][]Action)
	}
	p.Permissions[role] = granted
}

// Revoke removes all actions of a role and reports whether it had any.
func (p *Policies) Revoke(role string) bool {
	before := len(p.Permissions)
	maps.DeleteFunc(p.Permissions, func(other string, _ []Action) bool { return sameRole(role, other) })
	return len(p.Permissions) < before
}

// grants reports whether these permissions allow a role an action.
func (p *Policies) grants(role string, action Action) bool {
	if slices.Contains(p.Permissions[role], action) {
		return true
	}
	for other, granted := range p.Permissions {
		if sameRole(role, other) && slices.Contains(granted, action) {
			return true
		}
	}
	return false
}

// allows reports whether the permissions of the topic, its namespace or its tenant allow a role an
// action. A tenant's administrators may do everything in it. allows never blocks.
func (g *ClusterGrants) allows(role string, topic names.Topic, action Action) bool {
	c := g.state.View()
	if t, ok := lookup(c, topic); ok && t.policies.grants(role, action) {
		return true
	}
	if ns, ok := c.namespace(topic.Namespace); ok && ns.policies.grants(role, action) {
		return true
	}
	return g.administers(role, topic.Namespace.Tenant)
}

// administers reports whether a role is among a tenant's administrators.
func (g *ClusterGrants) administers(role, tenant string) bool {
	t, ok := g.state.View().tenants.Get(tenant)
	return ok && slices.ContainsFunc(t.AdminRoles, func(other string) bool { return sameRole(role, other) })
}
