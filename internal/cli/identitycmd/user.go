package identitycmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newUser(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "user",
		Aliases: []string{"users"},
		Short:   "Create, invite, list and delete users",
		Long: `Create, invite, list and delete the users of an organization. A user is a person who signs
in through a browser. An invitation is a link with which the person sets a password.`,
		Example: `  # create a user and print the link of an invitation
  freshet user create ann --email ann@example.org --name 'Ann Lee' --invite

  # another link, for a person who has lost the first one or the password
  freshet user invite ann

  # what the user may do is decided by roles
  freshet grant org-readonly --to user/ann`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newUserCreate(env), newUserInvite(env),
		newObjectList(env, users, "List the users of the organization", `  # with their state
  freshet user list

  # names only, for scripts
  freshet user list -o name

  # their e-mail addresses
  freshet user list -o jsonpath='{range [*]}{.spec.email}{"\n"}{end}'`,
			"Create one with 'freshet user create NAME --email ADDRESS'."),
		newUserDelete(env))
	return cmd
}

func newUserCreate(env *command.Env) *cobra.Command {
	var email, name string
	var invites bool
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME --email ADDRESS",
		Short: "Create a user",
		Long: `Create a user. The user can sign in when an invitation was accepted (--invite prints its
link), or through the identity provider that the operator has configured. The user has no
permissions until you grant a role ('freshet grant ROLE --to user/NAME').`,
		Example: `  # create a user
  freshet user create ben --email ben@example.org

  # with the name of the person, and an invitation
  freshet user create cleo --email cleo@example.org --name 'Cleo Marsh' --invite

  # grant a role
  freshet grant org-readonly --to user/ben`,
		Args: command.OneArg("the name of the user"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if email == "" {
				return command.Usagef(cmd, "--email is missing; it is the address of the person")
			}
			r, at, err := env.Resources()
			if err != nil {
				return err
			}
			spec := map[string]any{"email": email}
			if first, last, _ := strings.Cut(name, " "); name != "" {
				spec["name"] = map[string]any{"first": first, "last": last}
			}
			_, err = r.Create(cmd.Context(), users, at.Organization, map[string]any{
				"apiVersion": users.APIVersion(), "kind": users.Kind,
				"metadata": map[string]any{"name": args[0]}, "spec": spec,
			}, resources.WriteOptions{FieldManager: fieldManager})
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "'freshet user invite %s' prints the link of another invitation.", args[0])
			}
			if err != nil {
				return err
			}
			if !invites {
				return env.Done(command.Result{Kind: "user", Name: args[0], Action: "created"},
					"user %s created in organization %s", args[0], at.Organization)
			}
			if _, err := fmt.Fprintf(env.Err, "user %s created in organization %s\n", args[0],
				at.Organization); err != nil {
				return err
			}
			return invite(cmd.Context(), env, args[0], lifetime, output.FormatText)
		},
	}
	f := cmd.Flags()
	f.StringVar(&email, "email", "", "e-mail `address` of the person")
	f.StringVar(&name, "name", "", "first and last `name` of the person")
	f.BoolVar(&invites, "invite", false, "print the link of an invitation")
	f.DurationVar(&lifetime, "lifetime", defaultInvitation, "how long the invitation is valid, 1m to 30 days")
	return cmd
}

// defaultInvitation is the lifetime of an invitation.
const defaultInvitation = 7 * 24 * time.Hour

func newUserInvite(env *command.Env) *cobra.Command {
	var lifetime time.Duration
	var format output.Format
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Print the link of an invitation, with which a user sets a password",
		Long: `Print the link of an invitation, with which a user sets a password. It can be used once.
The holder of the link can sign in as the user: send it to nobody else.`,
		Example: `  # valid for a week
  freshet user invite ann

  # valid for a day
  freshet user invite ann --lifetime 24h

  # with its expiry, for scripts
  freshet user invite ann -o json`,
		Args:              command.OneArg("the name of the user"),
		ValidArgsFunction: completeNames(env, users, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return invite(cmd.Context(), env, args[0], lifetime, format)
		},
	}
	cmd.Flags().DurationVar(&lifetime, "lifetime", defaultInvitation, "how long the link is valid, 1m to 30 days")
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// invitation is the output of invite.
type invitation struct {
	User    string `json:"user"`
	URL     string `json:"url"`
	Expires string `json:"expires,omitempty"`
}

func invite(ctx context.Context, env *command.Env, name string, lifetime time.Duration, format output.Format) error {
	r, at, err := env.Resources()
	if err != nil {
		return err
	}
	link, err := r.Post(ctx, resources.Ref{Kind: users, Organization: at.Organization, Name: name}, "invite",
		map[string]any{
			"apiVersion": users.APIVersion(), "kind": "InvitationLink",
			"spec": map[string]any{"lifetimeSeconds": int64(lifetime.Seconds())},
		})
	if errors.Is(err, client.ErrNotFound) {
		return hint.Add(err, "'freshet user list' lists the users of organization %s, 'freshet user create' creates "+
			"one.", at.Organization)
	}
	if err != nil {
		return err
	}
	result := invitation{name, link.Text("status", "url"), link.Text("status", "expirationTime")}
	if format != output.FormatText {
		return output.Value(env.Out, format, result)
	}
	if _, err := fmt.Fprintln(env.Out, result.URL); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Err, "the link is valid once, until %s\n", result.Expires)
	return err
}

func newUserDelete(env *command.Env) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"rm"},
		Short:   "Delete a user",
		Long:    `Delete a user, and wait until the user is deleted. The user's sessions end.`,
		Example: `  # delete a user
  freshet user delete dan

  # list the remaining users
  freshet user list

  # in another organization
  freshet user list -n default`,
		Args:              command.OneArg("the name of the user"),
		ValidArgsFunction: completeNames(env, users, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := deleteObject(cmd.Context(), env, users, args[0], timeout); err != nil {
				return err
			}
			return env.Done(command.Result{Kind: "user", Name: args[0], Action: "deleted"},
				"user %s deleted", args[0])
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait until the user is deleted")
	return cmd
}
