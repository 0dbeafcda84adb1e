package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/client/resources"
	"freshet/internal/base/version"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
	"freshet/internal/cli/session"
	"freshet/internal/cli/tokencache"
)

// Client speaks to the chosen server's resource API: accounts, keys, clusters.
func (e *Env) Client() (*client.Client, error) {
	c, err := e.Context()
	if err != nil {
		return nil, err
	}
	return e.connect(c, "")
}

// Resources are those of the chosen server, and the context it was chosen by. What
// the server warns of is told on standard error.
func (e *Env) Resources() (*resources.Client, contexts.Context, error) {
	c, err := e.Context()
	if err != nil {
		return nil, c, err
	}
	conn, err := e.connect(c, "")
	if err != nil {
		return nil, c, err
	}
	r := resources.New(conn)
	r.Warn = func(text string) {
		_, _ = fmt.Fprintln(e.Err, "Warning:", output.Clean(text)) // a courtesy
	}
	return r, c, nil
}

// ClusterClient speaks to the chosen cluster: messages and schemas.
func (e *Env) ClusterClient(ctx context.Context) (*client.Client, error) {
	c, err := e.Context()
	if err != nil {
		return nil, err
	}
	audience, err := e.Audience(ctx, c)
	if err != nil {
		return nil, err
	}
	return e.connect(c, audience)
}

// OnCluster makes what a command runs of what it does with a client of the chosen
// cluster.
func (e *Env) OnCluster(do func(cmd *cobra.Command, c *client.Client,
	given []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		c, err := e.ClusterClient(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd, c, given)
	}
}

// Tokens is who the context says is asking: for the resource API when audience is
// empty.
func (e *Env) Tokens(c contexts.Context, audience string) (client.TokenSource, error) {
	switch {
	case c.Credential.Session != "":
		return session.Source(c.Credential.Session), nil
	case c.Credential.TokenFile != "":
		return client.FileToken(c.Credential.TokenFile), nil
	case c.Credential.File != "":
		credentials, err := contexts.ReadCredentials(c.Credential.File)
		if err != nil {
			return nil, err
		}
		endpoint := c.Server + "/oauth/token"
		source, err := client.ClientCredentials(
			client.Credentials{
				ClientID: credentials.ClientID, ClientSecret: credentials.ClientSecret,
				IssuerURL: credentials.IssuerURL,
			},
			client.CredentialsOptions{TokenURL: endpoint, Audience: audience, CA: []byte(c.CA)})
		if err != nil {
			return nil, err
		}
		secret := sha256.Sum256([]byte(credentials.ClientSecret))
		return tokencache.New(source, tokencache.Directory(e.Getenv), endpoint, credentials.ClientID,
			hex.EncodeToString(secret[:]), audience), nil
	}
	return nil, hint.Add(fmt.Errorf("context %s names no credentials", c.Name), "Sign in again with 'freshet login'.")
}

// connect makes the client of a context. audience is that of its tokens, "" for the
// resource API.
func (e *Env) connect(c contexts.Context, audience string) (*client.Client, error) {
	tokens, err := e.Tokens(c, audience)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{
		BaseURL: c.Server, CA: []byte(c.CA), Organization: c.Organization, Cluster: c.Cluster,
		TokenSource: tokens, UserAgent: "freshet/" + version.Get().Version,
	})
}

// Audience is that of the tokens which are good for the context's cluster: it is
// made of the cluster's organization and instance (docs/spec/resources.md#r10). It is
// empty when no token is asked for because there is one already.
func (e *Env) Audience(ctx context.Context, c contexts.Context) (string, error) {
	if c.Credential.File == "" {
		return "", nil
	}
	if c.Instance == "" {
		conn, err := e.connect(c, "")
		if err != nil {
			return "", err
		}
		defer conn.Close()
		answer, err := conn.Do(ctx, &client.Request{
			Method: http.MethodGet,
			Path: "/apis/cloud.vendor.io/v1alpha1/namespaces/" + url.PathEscape(c.Organization) +
				"/messagingclusters/" + url.PathEscape(c.Cluster),
		})
		if errors.Is(err, client.ErrDenied) {
			return "", hint.Add(err,
				"Say which instance the cluster belongs to: freshet login --instance NAME, or FRESHET_INSTANCE.")
		}
		if err != nil {
			return "", err
		}
		var cluster struct {
			Spec struct {
				InstanceName string `json:"instanceName"`
			} `json:"spec"`
		}
		if err := answer.JSON(&cluster); err != nil {
			return "", err
		}
		c.Instance = cluster.Spec.InstanceName
	}
	return "urn:vendor:messaging:" + c.Organization + ":" + c.Instance, nil
}
