package access

import (
	"cmp"
	"context"
	"slices"

	"freshet/internal/identity"
)

// ClusterGrant is a grant that a cluster itself makes to an account, in addition to role
// bindings: to administrators of its tenants, and by permissions on namespaces and topics.
type ClusterGrant struct {
	Scope       Scope
	Permissions []Permission
}

// ClusterGrants returns the grants that the clusters of an organization make.
type ClusterGrants interface {
	// GrantsOf returns the grants for an account, or for a user by identity.UserRole. It
	// returns an error if a cluster does not respond.
	GrantsOf(organization, account string) ([]ClusterGrant, error)
}

// SetClusterGrants sets the source of cluster grants. It must be called before the policy is
// used. Without it clusters grant nothing.
func (p *Policy) SetClusterGrants(clusters ClusterGrants) { p.clusters = clusters }

// mayHoldClusterGrants returns nil if a principal has all permissions that clusters grant
// to an account, by its own roles or cluster grants.
func (p *Policy) mayHoldClusterGrants(principal *identity.Principal, organization, account string) error {
	if p.clusters == nil {
		return nil
	}
	granted, err := p.clusters.GrantsOf(organization, account)
	if err != nil || len(granted) == 0 {
		return err
	}
	var own []ClusterGrant
	if principal.Organization == organization {
		name := cmp.Or(principal.ServiceAccount, identity.UserRole(principal.User))
		if own, err = p.clusters.GrantsOf(organization, name); err != nil {
			return err
		}
	}
	for _, g := range granted {
		for _, perm := range g.Permissions {
			if _, err := p.Authorize(context.Background(), principal, perm, g.Scope); err != nil &&
				!coveredByCluster(principal, own, perm, &g.Scope) {
				return newDenial(principal, perm, &g.Scope, escalation+" (the cluster grants it to the account)")
			}
		}
	}
	return nil
}

func coveredByCluster(principal *identity.Principal, own []ClusterGrant, perm Permission, scope *Scope) bool {
	if principal.Instance != "" && principal.Instance != scope.Instance {
		return false
	}
	return slices.ContainsFunc(own, func(g ClusterGrant) bool {
		return slices.Contains(g.Permissions, perm) && g.Scope.encloses(scope)
	})
}

// encloses reports whether other is within s.
func (s *Scope) encloses(other *Scope) bool {
	for i := range fieldCount {
		if name := s.field(i); name != "" && name != other.field(i) {
			return false
		}
	}
	return true
}
