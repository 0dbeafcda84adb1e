package authcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/cli/session"
	"freshet/internal/ops/kubeconfig"
)

func newAuth(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:   "auth",
		Short: "Show your identity and get tokens",
		Example: `  # show your identity
  freshet auth whoami

  # call the API with curl
  curl -s -H "Authorization: Bearer $(freshet auth token)" --cacert freshet-data/tls/ca.crt $SERVER/version

  # the command that kubectl runs to get a token
  freshet auth exec`,
	}, newWhoami(env), newToken(env), newExec(env))
}

// identity is the caller's identity as the server reports it.
type identity struct {
	Principal           string     `json:"principal"`
	Kind                string     `json:"kind,omitempty"`
	Name                string     `json:"name,omitempty"`
	Organization        string     `json:"organization,omitempty"`
	Administrator       bool       `json:"administrator"`
	SystemAdministrator bool       `json:"systemAdministrator"`
	Expires             *time.Time `json:"expires,omitempty"`
	// Person, Email and SessionEnds are set for a user who signed in through a browser. The
	// session expires at SessionEnds unless it is renewed.
	Person      string     `json:"person,omitempty"`
	Email       string     `json:"email,omitempty"`
	SessionEnds *time.Time `json:"sessionEnds,omitempty"`

	Server  string `json:"server"`
	Context string `json:"context,omitempty"`
}

func whoami(ctx context.Context, conn *client.Client) (identity, error) {
	response, err := resources.New(conn).Post(ctx, resources.Ref{Kind: command.UserReviews}, "", map[string]any{})
	if err != nil {
		return identity{}, err
	}
	var review struct {
		Status struct {
			Users []struct {
				Kind, Name, Organization string
			}
			Principal                          string
			Administrator, SystemAdministrator bool
			ExpirationTime                     *time.Time
		}
	}
	if err := response.Into(&review); err != nil {
		return identity{}, fmt.Errorf("decoding the server's response: %w", err)
	}
	s := review.Status
	caller := identity{
		Principal: s.Principal, Administrator: s.Administrator, SystemAdministrator: s.SystemAdministrator,
		Expires: s.ExpirationTime, Server: conn.BaseURL(),
	}
	if len(s.Users) > 0 {
		caller.Kind, caller.Name, caller.Organization = s.Users[0].Kind, s.Users[0].Name, s.Users[0].Organization
	}
	return caller, nil
}

func newWhoami(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show your identity as the server sees it",
		Example: `  # name, organization, and expiry of the token and the session
  freshet auth whoami

  # the principal only, as access lists and audit records name it
  freshet auth whoami -o name

  # as another account
  freshet auth whoami --credentials-file freshet-data/admin.json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := env.Client()
			if err != nil {
				return err
			}
			caller, err := whoami(cmd.Context(), conn)
			if err != nil {
				return err
			}
			if c, err := env.Context(); err == nil {
				caller.Context = c.Name
				if err := addSession(cmd.Context(), conn, c, &caller); err != nil {
					return err
				}
			}
			switch format {
			case output.FormatText:
				return printIdentity(env, caller)
			case output.FormatName:
				return env.Println(caller.Principal)
			}
			return output.Value(env.Out, format, caller)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatName, output.FormatJSON, output.FormatYAML)
	return cmd
}

// addSession adds the user's session to an identity, if the context has one.
func addSession(ctx context.Context, conn *client.Client, c contexts.Context, caller *identity) error {
	if c.Credential.Session == "" {
		return nil
	}
	stored, err := session.Read(c.Credential.Session)
	if err != nil {
		return err
	}
	if !stored.Ends.IsZero() {
		caller.SessionEnds = &stored.Ends
	}
	caller.Person, caller.Email, err = userInfo(ctx, conn)
	return err
}

// userInfo returns the name and the e-mail address of the signed-in user.
func userInfo(ctx context.Context, conn *client.Client) (name, email string, err error) {
	response, err := conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/oauth/userinfo"})
	if err != nil {
		return "", "", err
	}
	var info struct{ Name, Email string }
	if err := response.JSON(&info); err != nil {
		return "", "", err
	}
	return info.Name, info.Email, nil
}

const timeForm = "2006-01-02 15:04:05 MST"

func printIdentity(env *command.Env, caller identity) error {
	role := "by role bindings"
	switch {
	case caller.SystemAdministrator:
		role = "system administrator"
	case caller.Administrator:
		role = "administrator of the organization"
	}
	expires := "unknown"
	if caller.Expires != nil {
		expires = caller.Expires.Local().Format(timeForm)
	}
	text := ""
	if caller.Person != "" {
		text = "Person:        " + output.Clean(strings.TrimSpace(caller.Person+" "+caller.Email)) + "\n"
	}
	if caller.SessionEnds != nil {
		text += "Session until: " + caller.SessionEnds.Local().Format(timeForm) + " (using it extends it)\n"
	}
	return env.Printf(
		"Principal:     %s\n%-15s%s\nOrganization:  %s\nRights:        %s\nToken until:   %s\nServer:        %s\n%s",
		output.Clean(caller.Principal), caller.Kind+":", output.Clean(caller.Name),
		output.Clean(caller.Organization), role,
		expires, caller.Server, text)
}

// printedToken is the output of token in the form of -o json.
type printedToken struct {
	Token   string     `json:"token"`
	Expires *time.Time `json:"expires,omitempty"`
}

func newToken(env *command.Env) *cobra.Command {
	var purpose string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Print an access token",
		Long: `Print an access token, for example for curl: a token that the server issues for the
context's credentials, or the context's API key. An access token of a service account is
valid for one audience: the resource API, or with --for messages the clusters of the
instance that the context's cluster belongs to. The token is a secret.`,
		Example: `  # call the resource API
  curl -s --cacert freshet-data/tls/ca.crt -H "Authorization: Bearer $(freshet auth token)" $SERVER/api/v1/namespaces

  # for messages and schemas
  freshet auth token --for messages > token

  # for another account
  freshet auth token --credentials-file freshet-data/admin.json > token`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if purpose != "resources" && purpose != "messages" {
				return command.Usagef(cmd, "--for takes resources or messages, not %q", purpose)
			}
			secret, err := token(cmd.Context(), env, purpose == "messages")
			if err != nil {
				return err
			}
			if format.IsData() {
				result := printedToken{Token: secret.Value}
				if !secret.Expiry.IsZero() {
					result.Expires = &secret.Expiry
				}
				return output.Value(env.Out, format, result)
			}
			return env.Println(secret.Value)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	cmd.Flags().StringVar(&purpose, "for", "resources", "`API` for which the token is valid: resources or messages")
	return cmd
}

// execCredential is the output that kubectl and client-go read.
type execCredential struct {
	Kind       string     `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Status     execStatus `json:"status"`
}

type execStatus struct {
	Token   string     `json:"token"`
	Expires *time.Time `json:"expirationTimestamp,omitempty"`
}

func newExec(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "exec",
		Short: "Print a token for kubectl",
		Long: `Print a token for kubectl as a Kubernetes ExecCredential
(client.authentication.k8s.io/v1). 'freshet kubeconfig' writes files that run this
command. The token is cached until it expires, and replaced if the server no longer
accepts it.`,
		Example: `  # the output that kubectl reads
  freshet auth exec > credential.json

  # with another context
  freshet auth exec --context local > credential.json

  # write a kubeconfig that runs this command
  freshet kubeconfig --merge`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret, err := token(cmd.Context(), env, false)
			if err != nil {
				return err
			}
			response := execCredential{
				Kind: "ExecCredential", APIVersion: kubeconfig.ExecVersion,
				Status: execStatus{Token: secret.Value},
			}
			if !secret.Expiry.IsZero() {
				response.Status.Expires = &secret.Expiry
			}
			return json.NewEncoder(env.Out).Encode(response)
		},
	}
}

// token returns a token of the context, for messages or for the resource API. It checks a
// token for the resource API with a request first: a cached token may have been revoked,
// and kubectl, which requests another token after a 401, would get the same one again. It
// ignores an unreachable server, because the caller will report that.
func token(ctx context.Context, env *command.Env, messages bool) (client.Token, error) {
	c, err := env.Context()
	if err != nil {
		return client.Token{}, err
	}
	audience := ""
	if messages {
		if audience, err = env.Audience(ctx, c); err != nil {
			return client.Token{}, err
		}
	} else {
		conn, err := env.Client()
		if err != nil {
			return client.Token{}, err
		}
		if _, err := whoami(ctx, conn); err != nil && !errors.Is(err, client.ErrUnavailable) {
			return client.Token{}, err
		}
	}
	tokens, err := env.Tokens(c, audience)
	if err != nil {
		return client.Token{}, err
	}
	return tokens.Token(ctx)
}
