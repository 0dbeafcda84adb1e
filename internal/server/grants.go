package server

import (
	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// clusterGrants implements access.ClusterGrants with the data plane.
type clusterGrants struct{ server *server }

var _ access.ClusterGrants = clusterGrants{}

// errStarting is returned until the server is ready, because the grants of clusters that are
// not open yet are unknown.
var errStarting = errs.New(errs.Unavailable,
	"server is starting, so the grants of clusters to the account are unknown; try again when it is ready")

// GrantsOf implements access.ClusterGrants.
func (g clusterGrants) GrantsOf(organization, account string) ([]access.ClusterGrant, error) {
	if g.server.readiness.check() != nil {
		return nil, errStarting
	}
	return g.server.plane.GrantsOf(organization, messaging.FormatRole(account, organization))
}
