package dataplane

import (
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// GrantsOf returns the grants that the clusters of an organization themselves give to a
// principal. It fails when one of the clusters is not open, because its grants are unknown
// then.
func (p *Plane) GrantsOf(organization, principal string) ([]access.ClusterGrant, error) {
	dir := p.running.Load()
	for _, failed := range dir.failed {
		if failed.spec.Organization == organization {
			return nil, errs.Newf(errs.Unavailable,
				"cluster %s is not open, so its grants to %s are unknown; try again when it is ready",
				failed.spec.Name, principal)
		}
	}
	var granted []access.ClusterGrant
	for _, c := range dir.byUID {
		if c.Organization != organization {
			continue
		}
		for _, g := range slices.Clone(c.Broker.Grants.Of(principal)) {
			g.Scope.Organization, g.Scope.Instance, g.Scope.Cluster = c.Scope.Organization, c.Scope.Instance,
				c.Scope.Cluster
			granted = append(granted, g)
		}
	}
	return granted, nil
}

// clusterGrants implements access.ClusterGrants.
type clusterGrants struct {
	plane *Plane
	ready func() error
}

// ClusterGrants returns the grants of all clusters. ready returns an error while stored clusters
// may not be open yet, because their grants are unknown then.
func (p *Plane) ClusterGrants(ready func() error) access.ClusterGrants {
	return clusterGrants{p, ready}
}

var errStarting = errs.New(errs.Unavailable,
	"server is starting, so the grants of clusters to the account are unknown; try again when it is ready")

// GrantsOf implements access.ClusterGrants.
func (g clusterGrants) GrantsOf(organization, account string) ([]access.ClusterGrant, error) {
	if g.ready() != nil {
		return nil, errStarting
	}
	return g.plane.GrantsOf(organization, messaging.FormatRole(account, organization))
}
