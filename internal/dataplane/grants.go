package dataplane

import (
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/identity/access"
)

// GrantsOf lists what the clusters of an organization grant to a principal by
// themselves. It fails when one of them is not open: what it grants is not known
// then, and holds again once it is.
func (p *Plane) GrantsOf(organization, principal string) ([]access.ClusterGrant, error) {
	dir := p.running.Load()
	for _, failed := range dir.failed {
		if failed.spec.Organization == organization {
			return nil, errs.Newf(errs.Unavailable,
				"cluster %s is not open, so what it grants to %s is not known; try again when it is ready",
				failed.spec.Name, principal)
		}
	}
	var granted []access.ClusterGrant
	for _, c := range dir.byUID {
		if c.Organization != organization {
			continue
		}
		for _, g := range slices.Clone(c.Broker.GrantsOf(principal)) {
			g.Scope.Organization, g.Scope.Instance, g.Scope.Cluster = c.Scope.Organization, c.Scope.Instance,
				c.Scope.Cluster
			granted = append(granted, g)
		}
	}
	return granted, nil
}
