package access

import (
	"context"
	"slices"

	"freshet/internal/identity"
)

// ClusterGrant is what a cluster grants to an account by itself, beside the role
// bindings: to administrators of its tenants, and by permissions on namespaces
// and topics.
type ClusterGrant struct {
	Scope       Scope
	Permissions []Permission
}

// ClusterGrants tells what the clusters of an organization grant to one of its
// accounts, or to a person by identity.UserRole. It fails when a cluster cannot be asked.
type ClusterGrants interface {
	GrantsOf(organization, account string) ([]ClusterGrant, error)
}

// AskClusters makes the policy weigh what clusters grant. It is called once,
// before the policy is used; without it clusters grant nothing.
func (p *Policy) AskClusters(clusters ClusterGrants) { p.clusters = clusters }

// mayHoldClusterGrants reports whether a principal has all that clusters grant
// to an account, by roles or by what clusters grant to the principal.
func (p *Policy) mayHoldClusterGrants(who *identity.Principal, organization, account string) error {
	if p.clusters == nil {
		return nil
	}
	granted, err := p.clusters.GrantsOf(organization, account)
	if err != nil || len(granted) == 0 {
		return err
	}
	var own []ClusterGrant
	if name := who.ServiceAccount; who.Organization == organization {
		if name == "" {
			name = identity.UserRole(who.User)
		}
		if own, err = p.clusters.GrantsOf(organization, name); err != nil {
			return err
		}
	}
	for _, g := range granted {
		for _, perm := range g.Permissions {
			if _, err := p.Authorize(context.Background(), who, perm, g.Scope); err != nil &&
				!coveredByCluster(who, own, perm, &g.Scope) {
				return deny(who, perm, &g.Scope, escalation+" (the cluster grants it to the account)")
			}
		}
	}
	return nil
}

func coveredByCluster(who *identity.Principal, own []ClusterGrant, perm Permission, scope *Scope) bool {
	if who.Instance != "" && who.Instance != scope.Instance {
		return false
	}
	return slices.ContainsFunc(own, func(g ClusterGrant) bool {
		return slices.Contains(g.Permissions, perm) && g.Scope.encloses(scope)
	})
}

// encloses reports whether other lies in s.
func (s *Scope) encloses(other *Scope) bool {
	for i := range fieldCount {
		if name := s.field(i); name != "" && name != other.field(i) {
			return false
		}
	}
	return true
}
