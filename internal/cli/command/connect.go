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

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/version"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
	"freshet/internal/cli/session"
	"freshet/internal/cli/tokencache"
)

// Client returns a client for the resource API of the chosen server.
func (e *Env) Client() (*client.Client, error) {
	c, err := e.Context()
	if err != nil {
		return nil, err
	}
	return e.connect(c, "")
}

// Call makes a call to the chosen server, and decodes the response into result unless that is nil.
func (e *Env) Call(ctx context.Context, method, path string, result any) error {
	conn, err := e.Client()
	if err != nil {
		return err
	}
	defer conn.Close()
	response, err := conn.Do(ctx, &client.Request{Method: method, Path: path})
	if err != nil || result == nil {
		return err
	}
	return response.JSON(result)
}

// Resources returns a client for the resources of the chosen server, and the context in
// use. The client prints the server's warnings to standard error.
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
		_, _ = fmt.Fprintln(e.Err, "Warning:", output.Clean(text))
	}
	return r, c, nil
}

// ClusterClient returns a client for the messages and schemas of the chosen cluster.
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

// OnCluster returns the RunE function of a command that needs a client for the chosen
// cluster. It closes the client afterwards.
func (e *Env) OnCluster(do func(cmd *cobra.Command, c *client.Client,
	args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := e.ClusterClient(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd, c, args)
	}
}

// Tokens returns the token source of a context. An empty audience is that of the resource
// API.
func (e *Env) Tokens(c contexts.Context, audience string) (client.TokenSource, error) {
	switch {
	case c.Credential.APIKey() != "":
		return client.StaticToken(c.Credential.APIKey()), nil
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
		transport, ca, err := e.transport(c.CA)
		if err != nil {
			return nil, err
		}
		source, err := client.ClientCredentials(
			client.Credentials{
				ClientID: credentials.ClientID, ClientSecret: credentials.ClientSecret,
				IssuerURL: credentials.IssuerURL,
			},
			client.CredentialsOptions{TokenURL: endpoint, Audience: audience, CA: ca, Transport: transport})
		if err != nil {
			return nil, err
		}
		secret := sha256.Sum256([]byte(credentials.ClientSecret))
		return tokencache.New(source, tokencache.Directory(e.Getenv), endpoint, credentials.ClientID,
			hex.EncodeToString(secret[:]), audience), nil
	}
	return nil, hint.Add(fmt.Errorf("context %s has no credentials", c.Name), "Sign in again with 'freshet login'.")
}

// The review kinds whose creation returns the caller's identity and permissions.
var (
	UserReviews   = ownReview("selfsubjectuserreviews", "SelfSubjectUserReview")
	RulesReviews  = ownReview("selfsubjectrulesreviews", "SelfSubjectRulesReview")
	AccessReviews = resources.Kind{
		Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews",
		Kind: "SelfSubjectAccessReview",
	}
)

func ownReview(resource, kind string) resources.Kind {
	return resources.Kind{Group: "authorization.vendor.io", Version: "v1alpha1", Resource: resource, Kind: kind}
}

// connect returns a client for a context. audience is the audience of its tokens, "" for
// the resource API.
func (e *Env) connect(c contexts.Context, audience string) (*client.Client, error) {
	tokens, err := e.Tokens(c, audience)
	if err != nil {
		return nil, err
	}
	transport, ca, err := e.transport(c.CA)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{
		BaseURL: c.Server, CA: ca, Organization: c.Organization, Cluster: c.Cluster,
		TokenSource: tokens, UserAgent: "freshet/" + version.Get().Version, Transport: transport,
	})
}

// Audience returns the audience of access tokens for the context's cluster, which names the
// cluster's organization and instance (docs/spec/resources.md#r10). It is empty for a
// context without a credentials file, because such a context requests no tokens.
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
		response, err := conn.Do(ctx, &client.Request{
			Method: http.MethodGet,
			Path: "/apis/cloud.vendor.io/v1alpha1/namespaces/" + url.PathEscape(c.Organization) +
				"/messagingclusters/" + url.PathEscape(c.Cluster),
		})
		if errors.Is(err, client.ErrDenied) {
			return "", hint.Add(err,
				"Set the instance of the cluster with freshet login --instance NAME, or with FRESHET_INSTANCE.")
		}
		if err != nil {
			return "", err
		}
		var cluster struct {
			Spec struct {
				InstanceName string `json:"instanceName"`
			} `json:"spec"`
		}
		if err := response.JSON(&cluster); err != nil {
			return "", err
		}
		c.Instance = cluster.Spec.InstanceName
	}
	return "urn:vendor:messaging:" + c.Organization + ":" + c.Instance, nil
}
