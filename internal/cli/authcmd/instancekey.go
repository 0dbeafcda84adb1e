package authcmd

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"freshet.dev/client"
	"freshet/internal/base/version"
	"freshet/internal/cli/contexts"
)

// identify returns the identity of a credential. The resource API rejects an API key of one
// instance, so identify then checks the key with the cluster of the context.
func (l *login) identify(ctx context.Context, conn *client.Client, c *contexts.Context,
	selection contexts.Selection,
) (identity, error) {
	caller, err := whoami(ctx, conn)
	if c.Credential.TokenFile == "" || !errors.Is(err, client.ErrUnauthenticated) {
		return caller, err
	}
	token, tokenErr := l.tokens.Token(ctx)
	if tokenErr != nil {
		return caller, tokenErr
	}
	caller, ok := accountOf(token.Value)
	if !ok {
		return caller, err
	}
	caller.Organization = cmp.Or(selection.Organization, caller.Organization)
	cluster, clientErr := client.New(client.Config{
		BaseURL: c.Server, CA: []byte(c.CA), TokenSource: l.tokens, Organization: caller.Organization,
		Cluster:   cmp.Or(c.Cluster, contexts.DefaultCluster),
		UserAgent: "freshet/" + version.Get().Version,
	})
	if clientErr != nil {
		return caller, clientErr
	}
	defer cluster.Close()
	switch _, clusterErr := cluster.Topics(ctx, ""); {
	case clusterErr == nil, errors.Is(clusterErr, client.ErrDenied):
		return caller, nil
	case errors.Is(clusterErr, client.ErrNotFound):
		return caller, clusterErr
	}
	return caller, err
}

// accountOf returns the account that an API key names in its claims. The caller checks the key on
// the server.
func accountOf(token string) (identity, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return identity{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return identity{}, false
	}
	var claims struct {
		Subject   string `json:"sub"`
		Principal string `json:"https://vendor.io/username"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return identity{}, false
	}
	principal := cmp.Or(claims.Principal, claims.Subject)
	name, host, ok := strings.Cut(principal, "@")
	organization, _, _ := strings.Cut(host, ".")
	found := identity{Principal: principal, Name: name, Organization: organization}
	return found, ok && name != "" && organization != ""
}
