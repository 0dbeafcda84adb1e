package kafkaapi

import (
	"fmt"
	"strings"

	"freshet/internal/identity"
)

// AnonymousTokens returns a function that issues tokens of the service account of clients without
// credentials, or nil if there is none. of is its organization/name (stream.anonymous). A token
// is for one connection and never leaves the process.
func AnonymousTokens(of string, directory *identity.Directory,
	issuer *identity.Issuer,
) func(*Cluster) (string, error) {
	organization, name, ok := strings.Cut(of, "/")
	if !ok {
		return nil
	}
	return func(c *Cluster) (string, error) {
		account, ok := directory.Account(organization, name)
		switch {
		case !ok:
			return "", fmt.Errorf(
				"service account %s of stream.anonymous does not exist; create it, or remove the setting", of)
		case account.Admin || account.System:
			return "", fmt.Errorf("service account %s of stream.anonymous is an administrator; use another account", of)
		}
		token, _, err := issuer.AccessToken(account, identity.MaxTokenLifetime, c.Audiences[0])
		return token.Reveal(), err
	}
}
