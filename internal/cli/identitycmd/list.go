package identitycmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// listObjects prints the objects of a kind in the context's organization, as a table with the
// server's columns.
func listObjects(ctx context.Context, env *command.Env, kind resources.Kind, format output.Format, empty string) error {
	r, at, err := env.Resources()
	if err != nil {
		return err
	}
	if format.IsData() || format == output.FormatName {
		list, err := r.List(ctx, kind, at.Organization, resources.ListOptions{})
		if err != nil {
			return err
		}
		if format.IsData() {
			return output.Value(env.Out, format, list)
		}
		for _, o := range list {
			if _, err := fmt.Fprintln(env.Out, output.Clean(o.Name())); err != nil {
				return err
			}
		}
		return nil
	}
	table, err := r.Table(ctx, kind, at.Organization, resources.ListOptions{})
	if err != nil {
		return err
	}
	if len(table.Rows) == 0 {
		_, err := fmt.Fprintf(env.Err, "No %s in organization %s. %s\n", kind.Resource, at.Organization, empty)
		return err
	}
	t := output.Table{Wide: format == output.FormatWide}
	for _, c := range table.Columns {
		t.Columns = append(t.Columns, output.Column{Name: c.Name, Wide: c.Priority > 0})
	}
	for _, row := range table.Rows {
		t.Rows = append(t.Rows, row.Cells)
	}
	return t.Write(env.Out)
}

// newObjectList returns the list command of a kind.
func newObjectList(env *command.Env, kind resources.Kind, short, examples, empty string) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: short, Example: examples, Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listObjects(cmd.Context(), env, kind, format, empty)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatWide, output.FormatJSON, output.FormatYAML,
		output.FormatName)
	return cmd
}

// deleteObject deletes an object of the context's organization and waits until it is gone.
func deleteObject(ctx context.Context, env *command.Env, kind resources.Kind, name string,
	timeout time.Duration,
) error {
	r, at, err := env.Resources()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ref := resources.Ref{Kind: kind, Organization: at.Organization, Name: name}
	err = r.Delete(ctx, ref, resources.DeleteOptions{GracePeriod: -1})
	if errors.Is(err, client.ErrNotFound) {
		return hint.Add(err, "'freshet get %s' lists those in organization %s.", kind.Resource, at.Organization)
	}
	if err != nil {
		return err
	}
	_, err = r.Wait(ctx, ref, func(o resources.Object) (bool, error) { return o == nil, nil })
	return err
}

func newAccountList(env *command.Env) *cobra.Command {
	return newObjectList(env, resources.ServiceAccounts, "List the service accounts of the organization",
		`  # with their state
  freshet sa list

  # names only, for scripts
  freshet sa list -o name

  # of another organization
  freshet sa list -n default`,
		"Create one with 'freshet sa create NAME'.")
}

func newAccountDelete(env *command.Env) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Aliases: []string{"rm"},
		Short:   "Delete service accounts",
		Long: `Delete service accounts, and wait until they are deleted. Their credentials and API keys
stop working.`,
		Example: `  # delete an account
  freshet sa delete old

  # several accounts
  freshet sa delete old-1 old-2

  # list the remaining accounts
  freshet sa list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "argument is missing: the names of the accounts")
			}
			return nil
		},
		ValidArgsFunction: completeNames(env, resources.ServiceAccounts, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if err := deleteObject(cmd.Context(), env, resources.ServiceAccounts, name, timeout); err != nil {
					return err
				}
				if err := env.Done(command.Result{Kind: "serviceaccount", Name: name, Action: "deleted"},
					"service account %s deleted", name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait until the accounts are deleted")
	return cmd
}
