// Package identitycmd implements the commands for organizations, service accounts, users and their
// permissions: org, sa, user, grant, ungrant, can-i. They are shortcuts: the same can be done with the
// generic commands of resourcecmd, such as get and apply.
package identitycmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// Commands returns the commands of this package.
func Commands(env *command.Env) []*cobra.Command {
	return command.InSection(command.SectionResources, newOrg(env), newAccount(env), newUser(env), newGrant(env),
		newUngrant(env), newCanI(env))
}

// fieldManager is the field manager of the objects that these commands write.
const fieldManager = "freshet"

func newOrg(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:     "org",
		Aliases: []string{"organization"},
		Short:   "Create, list and delete organizations",
		Long: `Create, list and delete organizations, which are namespaces for kubectl. Only system
administrators can create and delete them; every caller can see their own.`,
		Example: `  # create an organization for a team
  freshet org create team-a

  # list the organizations
  freshet org list

  # list its resources
  freshet get all -n team-a`,
	}, newOrgCreate(env), newOrgList(env), newOrgDelete(env))
}

func newOrgCreate(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME",
		Short: "Create an organization",
		Example: `  # create an empty organization
  freshet org create shop

  # create an administrator for it
  freshet sa create boss -n shop --admin

  # show its quota
  freshet describe quota -n shop`,
		Args: command.OneArg("the name of the organization"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, _, err := env.Resources()
			if err != nil {
				return err
			}
			_, err = r.Create(cmd.Context(), resources.Organizations, "", map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": args[0]},
			}, resources.WriteOptions{FieldManager: fieldManager})
			if err != nil {
				return err
			}
			return env.Done(command.Result{Kind: "organization", Name: args[0], Action: "created"},
				"organization %s created", args[0])
		},
	}
}

func newOrgList(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the organizations that you may see",
		Example: `  # with their age
  freshet org list

  # names only, for scripts
  freshet org list -o name

  # as Kubernetes namespaces
  freshet org list -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, _, err := env.Resources()
			if err != nil {
				return err
			}
			list, err := r.List(cmd.Context(), resources.Organizations, "", resources.ListOptions{})
			if err != nil {
				return err
			}
			t := output.Table{Columns: output.Columns("Name", "Age")}
			for _, o := range list {
				t.Rows = append(t.Rows, []string{o.Name(), output.AgeOf(o.Text("metadata", "creationTimestamp"))})
			}
			return env.List(format, list, &t, "")
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

func newOrgDelete(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete an empty organization",
		Long: `Delete an empty organization. The server rejects the request if the organization has
objects, and lists them in the error; delete them first.`,
		Example: `  # delete an organization
  freshet org delete mistake

  # list its objects
  freshet get all -n mistake

  # delete its objects first
  freshet delete sa,ak,rb --all -n mistake`,
		Args:              command.OneArg("the name of the organization"),
		ValidArgsFunction: completeNames(env, resources.Organizations, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, _, err := env.Resources()
			if err != nil {
				return err
			}
			err = r.Delete(cmd.Context(), resources.Ref{Kind: resources.Organizations, Name: args[0]},
				resources.DeleteOptions{GracePeriod: -1})
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "'freshet get all -n %s' shows its objects; delete them with 'freshet delete "+
					"KIND --all -n %s'.", args[0], args[0])
			}
			if errors.Is(err, client.ErrNotFound) {
				return hint.Add(errs.Newf(errs.NotFound, "organization %s does not exist", args[0]),
					"'freshet org list' lists the organizations.")
			}
			if err != nil {
				return err
			}
			return env.Done(command.Result{Kind: "organization", Name: args[0], Action: "deleted"},
				"organization %s deleted", args[0])
		},
	}
}

// ready waits until an account has the condition Ready.
func ready(ctx context.Context, r *resources.Client, ref resources.Ref) (resources.Object, error) {
	object, err := r.Wait(ctx, ref, func(o resources.Object) (bool, error) {
		return o != nil && o.Condition("Ready").Status == "True", nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c := object.Condition("Ready")
		return nil, command.Timeoutf("%s did not become ready in time: %s %s", ref, c.Reason, output.Clean(c.Message))
	}
	return object, err
}
