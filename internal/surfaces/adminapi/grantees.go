package adminapi

import (
	"fmt"
	"strconv"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
)

// Accounts knows the service accounts of organizations. identity.Directory does.
type Accounts interface {
	Account(organization, account string) (*identity.Account, bool)
}

const maxWarnings = 10

// warnOf tells the caller about roles that give nobody anything. They are kept
// all the same: the account may be made later, and tools of Pulsar bring roles
// of their own.
func (c *call) warnOf(roles ...string) {
	shown := 0
	for _, role := range roles {
		why := c.unknown(role)
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

// doneGranting answers 204 to a call that gave roles something.
func (c *call) doneGranting(err error, roles ...string) error {
	if err == nil {
		c.warnOf(roles...)
	}
	return c.done(err)
}

// unknown says why nobody is called like the role, "" when somebody is.
func (c *call) unknown(role string) string {
	organization := c.Cluster.Scope.Organization
	account, of, ok := messaging.Grantee(role)
	switch {
	case !ok:
		return fmt.Sprintf("role %q names no account and gives nobody anything; write <account>@%s", role, organization)
	case of != organization:
		return fmt.Sprintf("role %q is of organization %s and gives nobody anything; the cluster is of organization %s",
			role, of, organization)
	}
	if c.api.opts.Accounts == nil {
		return ""
	}
	if _, ok := c.api.opts.Accounts.Account(organization, account); !ok {
		return fmt.Sprintf("organization %s has no service account %s; what is granted to it holds once it is created",
			organization, account)
	}
	return ""
}
