package messaging

import (
	"slices"
	"strings"
	"sync/atomic"

	"freshet/internal/base/names"
	"freshet/internal/identity/access"
	"freshet/internal/storage/statemachine"
)

// A cluster stores permissions of its own, which Pulsar's admin API sets: the administrators of
// tenants, and actions on namespaces and topics.

// Permission returns the permission that an action grants. ok is false for actions without a meaning
// in this product.
func (a Action) Permission() (access.Permission, bool) {
	switch a {
	case ActionProduce:
		return "messaging.topics.produce", true
	case ActionConsume:
		return "messaging.topics.consume", true
	}
	return "", false
}

// tenantAdminPermissions are the permissions of a tenant's administrators within the tenant.
var tenantAdminPermissions = slices.DeleteFunc(access.Permissions(), func(p access.Permission) bool {
	return !strings.HasPrefix(string(p), "messaging.") || strings.HasPrefix(string(p), "messaging.tenants.")
})

// TenantAdminPermissions returns the permissions of a tenant's administrators within the tenant.
// The caller must not modify the slice.
func TenantAdminPermissions() []access.Permission { return tenantAdminPermissions }

// grantIndex lists the grants of every role for one state of the catalogue.
type grantIndex struct {
	catalogue *catalogueState
	byRole    map[string][]access.ClusterGrant
}

// ClusterGrants is the part of a broker that answers which permissions the catalogue grants to roles. It
// never blocks.
type ClusterGrants struct {
	state *statemachine.Machine[*catalogueState]
	index atomic.Pointer[grantIndex] // cached for one state of the catalogue
}

// Of returns the cluster's grants to a role, with scopes relative to the cluster. The caller
// must not modify the slice. Of never blocks; the first call after a change of the catalogue
// scans all of it.
func (g *ClusterGrants) Of(role string) []access.ClusterGrant {
	now := g.state.View()
	index := g.index.Load()
	if index == nil || index.catalogue != now {
		index = &grantIndex{catalogue: now, byRole: now.grants()}
		g.index.Store(index)
	}
	return index.byRole[canonicalRole(role)]
}

func (c *catalogueState) grants() map[string][]access.ClusterGrant {
	byRole := make(map[string][]access.ClusterGrant)
	add := func(permissions map[string][]Action, scope access.Scope) {
		for role, granted := range permissions {
			var conveyed []access.Permission
			for _, action := range granted {
				if p, ok := action.Permission(); ok {
					conveyed = append(conveyed, p)
				}
			}
			if len(conveyed) > 0 {
				role = canonicalRole(role)
				byRole[role] = append(byRole[role], access.ClusterGrant{Scope: scope, Permissions: conveyed})
			}
		}
	}
	c.tenants.Scan(func(name string, t *Tenant) bool {
		for _, role := range t.AdminRoles {
			role = canonicalRole(role)
			byRole[role] = append(byRole[role],
				access.ClusterGrant{Scope: access.Scope{Tenant: name}, Permissions: tenantAdminPermissions})
		}
		return true
	})
	c.namespaces.Scan(func(n *namespace) bool {
		add(n.policies.Permissions, access.Scope{Tenant: n.name.Tenant, Namespace: n.name.Name})
		return true
	})
	c.topics.Scan(func(item topicItem) bool {
		ns := item.name.Namespace
		add(item.topic.policies.Permissions, access.Scope{
			Tenant: ns.Tenant, Namespace: ns.Name, TopicDomain: string(names.Persistent), Topic: item.name.Local,
		})
		return true
	})
	return byRole
}

// Granted reports whether the cluster's own permissions grant a role a permission on a topic.
func (g *ClusterGrants) Granted(role string, p access.Permission, topic names.Topic) bool {
	for _, action := range []Action{ActionProduce, ActionConsume} {
		if conveyed, ok := action.Permission(); ok && conveyed == p {
			return g.allows(role, topic, action)
		}
	}
	return slices.Contains(TenantAdminPermissions(), p) && g.administers(role, topic.Namespace.Tenant)
}

// GrantedWithin reports whether the cluster's own permissions grant a role a permission on any
// scope of a namespace, of a tenant when the namespace has no name, or of the whole cluster when it
// has no tenant either.
func (g *ClusterGrants) GrantedWithin(role string, p access.Permission, within names.Namespace) bool {
	for _, g := range g.Of(role) {
		if (within.Tenant == "" || g.Scope.Tenant == within.Tenant) &&
			(within.Name == "" || g.Scope.Namespace == "" || g.Scope.Namespace == within.Name) &&
			slices.Contains(g.Permissions, p) {
			return true
		}
	}
	return false
}
