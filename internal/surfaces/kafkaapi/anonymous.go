package kafkaapi

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"

	"freshet/internal/identity"
)

// AnonymousAccount is the service account of clients without credentials (stream.anonymous).
type AnonymousAccount struct {
	organization, name string
	directory          *identity.Directory
	issuer             *identity.Issuer
	warned             atomic.Bool // the log has a warning that the account is an administrator
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
	case account.System:
		return "", fmt.Errorf("service account %s/%s of stream.anonymous belongs to the server; use another account",
			a.organization, a.name)
	}
	token, _, err := a.issuer.AccessToken(account, identity.MaxTokenLifetime, cluster.Audiences[0])
	return token.Reveal(), err
}

// warn logs at the start of a listener that it needs no credentials.
func (a *AnonymousAccount) warn(log *slog.Logger, address net.Addr) {
	log.Warn("every process on this machine can use the Kafka protocol without credentials, see stream.anonymous",
		slog.String("account", a.organization+"/"+a.name), slog.String("address", address.String()))
	a.warnAdministrator(log)
}

// warnAdministrator logs once that the account is an administrator. The account may become one while the server runs.
func (a *AnonymousAccount) warnAdministrator(log *slog.Logger) {
	account, ok := a.directory.Account(a.organization, a.name)
	if !ok || !account.Admin || a.warned.Swap(true) {
		return
	}
	log.Warn("account of stream.anonymous is an ADMINISTRATOR: every process on this machine can read, change and "+
		"delete everything over the Kafka protocol; use an account with fewer permissions unless this machine is yours",
		slog.String("account", a.organization+"/"+a.name))
}
