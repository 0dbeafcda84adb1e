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

	"freshet/client"
	"freshet/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/cli/session"
	"freshet/internal/ops/kubeconfig"
)

func newAuth(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Say who you are, and get tokens",
		Example: `  # as whom does the server know me?
  freshet auth whoami

  # a call by hand
  curl -s -H "Authorization: Bearer $(freshet auth token)" --cacert freshet-data/tls/ca.crt $SERVER/version

  # what kubectl runs for a token
  freshet auth exec`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newWhoami(env), newToken(env), newExec(env))
	return cmd
}

// userReviews is asked who the caller is.
var userReviews = resources.Kind{
	Group: "authorization.vendor.io", Version: "v1alpha1",
	Resource: "selfsubjectuserreviews", Kind: "SelfSubjectUserReview",
}

// identity is who the server says the caller is.
type identity struct {
	Principal           string     `json:"principal"`
	Kind                string     `json:"kind,omitempty"`
	Name                string     `json:"name,omitempty"`
	Organization        string     `json:"organization,omitempty"`
	Administrator       bool       `json:"administrator"`
	SystemAdministrator bool       `json:"systemAdministrator"`
	Expires             *time.Time `json:"expires,omitempty"`
	// Person and Email are those of who signed in through a browser, and SessionEnds
	// when that is over unless it is renewed before.
	Person      string     `json:"person,omitempty"`
	Email       string     `json:"email,omitempty"`
	SessionEnds *time.Time `json:"sessionEnds,omitempty"`

	Server  string `json:"server"`
	Context string `json:"context,omitempty"`
}

func whoami(ctx context.Context, conn *client.Client) (identity, error) {
	answer, err := resources.New(conn).Post(ctx, resources.Ref{Kind: userReviews}, "", map[string]any{})
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
	if err := answer.Into(&review); err != nil {
		return identity{}, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	s := review.Status
	who := identity{
		Principal: s.Principal, Administrator: s.Administrator, SystemAdministrator: s.SystemAdministrator,
		Expires: s.ExpirationTime, Server: conn.BaseURL(),
	}
	if len(s.Users) > 0 {
		who.Kind, who.Name, who.Organization = s.Users[0].Kind, s.Users[0].Name, s.Users[0].Organization
	}
	return who, nil
}

func newWhoami(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Say as whom the server knows you",
		Example: `  # who, of which organization, and until when the token and the session are good
  freshet auth whoami

  # the principal alone, as access lists and audit records name it
  freshet auth whoami -o name

  # as another account
  freshet auth whoami --credentials-file freshet-data/admin.json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := env.Client()
			if err != nil {
				return err
			}
			who, err := whoami(cmd.Context(), conn)
			if err != nil {
				return err
			}
			if c, err := env.Context(); err == nil {
				who.Context = c.Name
				if err := addSession(cmd.Context(), conn, c, &who); err != nil {
					return err
				}
			}
			switch format {
			case output.FormatText:
				return printIdentity(env, who)
			case output.FormatName:
				_, err = fmt.Fprintln(env.Out, who.Principal)
				return err
			}
			return output.Value(env.Out, format, who)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatName, output.FormatJSON, output.FormatYAML)
	return cmd
}

// addSession adds what is known of a person's session.
func addSession(ctx context.Context, conn *client.Client, c contexts.Context, who *identity) error {
	if c.Credential.Session == "" {
		return nil
	}
	kept, err := session.Read(c.Credential.Session)
	if err != nil {
		return err
	}
	if !kept.Ends.IsZero() {
		who.SessionEnds = &kept.Ends
	}
	who.Person, who.Email, err = person(ctx, conn)
	return err
}

// person asks the server for the name and the address of who has signed in.
func person(ctx context.Context, conn *client.Client) (name, email string, err error) {
	answer, err := conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/oauth/userinfo"})
	if err != nil {
		return "", "", err
	}
	var info struct{ Name, Email string }
	if err := answer.JSON(&info); err != nil {
		return "", "", err
	}
	return info.Name, info.Email, nil
}

const timeForm = "2006-01-02 15:04:05 MST"

func printIdentity(env *command.Env, who identity) error {
	role := "by role bindings"
	switch {
	case who.SystemAdministrator:
		role = "system administrator"
	case who.Administrator:
		role = "administrator of the organization"
	}
	expires := "not known to end"
	if who.Expires != nil {
		expires = who.Expires.Local().Format(timeForm)
	}
	text := ""
	if who.Person != "" {
		text = "Person:        " + output.Clean(strings.TrimSpace(who.Person+" "+who.Email)) + "\n"
	}
	if who.SessionEnds != nil {
		text += "Session until: " + who.SessionEnds.Local().Format(timeForm) + ", and longer when it is used before\n"
	}
	_, err := fmt.Fprintf(env.Out,
		"Principal:     %s\n%-15s%s\nOrganization:  %s\nRights:        %s\nToken until:   %s\nServer:        %s\n%s",
		output.Clean(who.Principal), who.Kind+":", output.Clean(who.Name), output.Clean(who.Organization), role,
		expires, who.Server, text)
	return err
}

func newToken(env *command.Env) *cobra.Command {
	var purpose string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Print a token for a call by hand",
		Long: `Print a token for a call by hand: an access token that was asked for with the
context's credentials, or the API key that the context refers to. An account's access token is
good for one audience: the resource API, or with --for messages the clusters of the
instance to which the context's cluster belongs. It is a secret.`,
		Example: `  # a call of the resource API
  curl -s --cacert freshet-data/tls/ca.crt -H "Authorization: Bearer $(freshet auth token)" $SERVER/api/v1/namespaces

  # for messages and schemas
  freshet auth token --for messages > token

  # of another account
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
			_, err = fmt.Fprintln(env.Out, secret.Value)
			return err
		},
	}
	cmd.Flags().StringVar(&purpose, "for", "resources", "the `use` that the token is good for: resources or messages")
	return cmd
}

// execCredential is the answer that kubectl and client-go read.
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
		Short: "Hand a token to kubectl",
		Long: `Hand a token to kubectl, in the form of a Kubernetes exec credential
(client.authentication.k8s.io/v1). 'freshet kubeconfig' writes files that run this
command. A token is kept and handed out again while it is good; one that the server
no longer takes is replaced.`,
		Example: `  # what kubectl gets
  freshet auth exec > credential.json

  # with another context
  freshet auth exec --context local > credential.json

  # a kubeconfig that runs it
  freshet kubeconfig --merge`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret, err := token(cmd.Context(), env, false)
			if err != nil {
				return err
			}
			answer := execCredential{
				Kind: "ExecCredential", APIVersion: kubeconfig.ExecVersion,
				Status: execStatus{Token: secret.Value},
			}
			if !secret.Expiry.IsZero() {
				answer.Status.Expires = &secret.Expiry
			}
			return json.NewEncoder(env.Out).Encode(answer)
		},
	}
}

// token is who the context says is asking, as a token: for messages, or for the
// resource API. The latter is one that the server takes at this moment: a token that
// was kept since an earlier command may have been withdrawn meanwhile, and kubectl,
// which asks again when it is refused, would be given the same one again. A server
// that does not answer is for the caller to notice.
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
