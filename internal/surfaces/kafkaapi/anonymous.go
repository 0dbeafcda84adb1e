package kafkaapi

import (
	"fmt"
	"strings"

	"freshet/internal/identity"
)

// AnonymousAccount is the service account of clients without credentials (stream.anonymous).
type AnonymousAccount struct {
	organization, name string
	directory          *identity.Directory
	issuer             *identity.Issuer
}

// NewAnonymousAccount returns the account organization/name, or nil if there is none: of is empty.
// The account may be created and deleted while the server runs.
func NewAnonymousAccount(of string, directory *identity.Directory, issuer *identity.Issuer) *AnonymousAccount {
	organization, name, ok := strings.Cut(of, "/")
	if !ok {
		return nil
	}
	return &AnonymousAccount{organization: organization, name: name, directory: directory, issuer: issuer}
}

// Token issues a token of the account for a cluster. It is for one connection and never leaves the
// process.
func (a *AnonymousAccount) Token(cluster *Cluster) (string, error) {
	account, ok := a.directory.Account(a.organization, a.name)
	switch {
	case !ok:
		return "", fmt.Errorf("service account %s/%s of stream.anonymous does not exist; create it, or remove the "+
			"setting", a.organization, a.name)
	case account.Admin || account.System:
		return "", fmt.Errorf("service account %s/%s of stream.anonymous is an administrator; use another account",
			a.organization, a.name)
	}
	token, _, err := a.issuer.AccessToken(account, identity.MaxTokenLifetime, cluster.Audiences[0])
	return token.Reveal(), err
}
