package server

import (
	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// clusterGrants tells access what clusters grant to accounts.
type clusterGrants struct{ server *server }

var _ access.ClusterGrants = clusterGrants{}

// errStarting: clusters that are not open yet grant what nobody knows.
var errStarting = errs.New(errs.Unavailable,
	"the server is starting, so what clusters grant to the account is not known; try again when it is ready")

// GrantsOf implements access.ClusterGrants.
func (g clusterGrants) GrantsOf(organization, account string) ([]access.ClusterGrant, error) {
	if g.server.readiness.check() != nil {
		return nil, errStarting
	}
	return g.server.plane.GrantsOf(organization, messaging.RoleOf(account, organization))
}
