package adminapi

import (
	"fmt"
	"strconv"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
)

// Accounts looks up the service accounts of organizations. identity.Directory
// implements it.
type Accounts interface {
	Account(organization, account string) (*identity.Account, bool)
}

const maxWarnings = 10

// warnUnknownRoles adds a Warning header for each role that no account has. Such roles are
// stored nevertheless: the account may be created later, and Pulsar's tools use role
// names of their own.
func (c *call) warnUnknownRoles(roles ...string) {
	shown := 0
	for _, role := range roles {
		why := c.roleWarning(role)
		if why == "" {
			continue
		}
		if shown++; shown > maxWarnings {
			return
		}
		// As the resource API warns, and kubectl shows (RFC 7234 §5.5).
		c.W.Header().Add("Warning", "299 - "+strconv.QuoteToASCII(why))
	}
}

// doneWithWarnings responds with 204 to a call that granted permissions to roles, with
// warnings about unknown roles.
func (c *call) doneWithWarnings(err error, roles ...string) error {
	if err == nil {
		c.warnUnknownRoles(roles...)
	}
	return c.done(err)
}

// roleWarning returns why a role matches no account, "" if it does.
func (c *call) roleWarning(role string) string {
	organization := c.Cluster.Scope.Organization
	account, of, ok := messaging.ParseRole(role)
	switch {
	case !ok:
		return fmt.Sprintf("role %q names no account, so the grant has no effect; use <account>@%s", role, organization)
	case of != organization:
		return fmt.Sprintf("role %q belongs to organization %s, so the grant has no effect; "+
			"the cluster belongs to organization %s", role, of, organization)
	}
	if c.api.opts.Accounts == nil {
		return ""
	}
	if _, ok := c.api.opts.Accounts.Account(organization, account); !ok {
		return fmt.Sprintf("organization %s has no service account %s; "+
			"the grant takes effect once the account is created", organization, account)
	}
	return ""
}
