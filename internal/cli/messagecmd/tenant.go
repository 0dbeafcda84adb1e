package messagecmd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newTenant(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tenant",
		Aliases: []string{"tenants"},
		Short:   "Create, list and delete tenants of a cluster",
		Long: `Create, list and delete tenants of a cluster. A tenant contains namespaces, and a
namespace topics: tenant/namespace/topic. Topics without a tenant are in public/default.`,
		Example: `  # create a tenant
  freshet tenant create sales

  # create a namespace in it
  freshet namespace create sales/eu

  # list the tenants
  freshet tenant list`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newTenantCreate(env), newTenantList(env), newTenantDelete(env))
	return cmd
}

func newTenantCreate(env *command.Env) *cobra.Command {
	var ifNotExists bool
	cmd := &cobra.Command{
		Use:   "create TENANT",
		Short: "Create a tenant",
		Example: `  # create a tenant
  freshet tenant create sales

  # in a script that may run twice
  freshet tenant create sales --if-not-exists

  # grant an account everything in it
  freshet grant tenant-owner --to shop --on tenant=sales`,
		Args: command.Args(0, "the tenant's name"),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			err := adminCall(cmd.Context(), c, http.MethodPut, tenantPath(given[0]), nil, nil)
			return created(env, "tenant", given[0], err, ifNotExists)
		}),
	}
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "succeed if the tenant already exists")
	return cmd
}

// created prints that an object was created. It handles the error of an object that exists.
func created(env *command.Env, kind, name string, err error, ifNotExists bool) error {
	what := kind + " " + name
	switch {
	case errors.Is(err, client.ErrConflict) && ifNotExists:
		return env.Done(command.Result{Kind: kind, Name: name, Action: "exists"}, "%s already exists", what)
	case errors.Is(err, client.ErrConflict):
		return hint.Add(errs.Newf(errs.Conflict, "%s already exists", what), "--if-not-exists ignores this error.")
	case err != nil:
		return err
	}
	return env.Done(command.Result{Kind: kind, Name: name, Action: "created"}, "%s created", what)
}

func newTenantList(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tenants of a cluster",
		Example: `  # the tenants that you may see
  freshet tenant list

  # names only, for scripts
  freshet tenant list -o name

  # as JSON
  freshet tenant list -o json`,
		Args: command.NoArgs,
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			var names []string
			if err := adminCall(cmd.Context(), c, http.MethodGet, "tenants", nil, &names); err != nil {
				return err
			}
			return printNames(env, format, names, "No tenants.")
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

// named is an item of a list that has only a name.
type named struct {
	Name string `json:"name"`
}

// printNames prints a list of names, or that it is empty.
func printNames(env *command.Env, format output.Format, names []string, empty string) error {
	slices.Sort(names)
	list := make([]named, len(names))
	table := output.Table{Columns: output.Columns("Name")}
	for i, name := range names {
		list[i].Name = name
		table.Rows = append(table.Rows, []string{name})
	}
	switch {
	case format.IsData():
		return output.Value(env.Out, format, list)
	case format == output.FormatName:
		for _, name := range names {
			if _, err := fmt.Fprintln(env.Out, output.Clean(name)); err != nil {
				return err
			}
		}
		return nil
	case len(names) == 0:
		_, err := fmt.Fprintln(env.Err, empty)
		return err
	}
	return table.Write(env.Out)
}

func newTenantDelete(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "delete TENANT",
		Aliases: []string{"rm"},
		Short:   "Delete a tenant without namespaces",
		Example: `  # list its namespaces
  freshet namespace list sales

  # delete them first
  freshet namespace delete sales/eu

  # delete the tenant
  freshet tenant delete sales`,
		Args:              command.Args(0, "the tenant's name"),
		ValidArgsFunction: completeTenants(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			err := adminCall(cmd.Context(), c, http.MethodDelete, tenantPath(given[0]), nil, nil)
			switch {
			case errors.Is(err, client.ErrNotFound):
				return hint.Add(errs.Newf(errs.NotFound, "tenant %s does not exist", given[0]),
					"'freshet tenant list' lists the tenants.")
			case errors.Is(err, client.ErrConflict):
				return hint.Add(err, "Delete its namespaces first; 'freshet namespace list %s' lists them.", given[0])
			case err != nil:
				return err
			}
			return env.Done(command.Result{Kind: "tenant", Name: given[0], Action: "deleted"},
				"tenant %s deleted", given[0])
		}),
	}
}

// completeTenants completes the first argument with the names of tenants.
func completeTenants(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := env.ClusterClient(cmd.Context())
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var names []string
		if err := adminCall(cmd.Context(), c, http.MethodGet, "tenants", nil, &names); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
