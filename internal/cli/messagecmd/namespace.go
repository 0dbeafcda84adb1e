package messagecmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newNamespace(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "namespace",
		Aliases: []string{"namespaces"},
		Short:   "Create, list, configure and delete namespaces of a cluster",
		Long: `Create, list, configure and delete namespaces of a cluster, tenant/namespace. The settings
of a namespace are the defaults of its topics. (The namespaces of kubectl are
organizations: see 'freshet org'.)`,
		Example: `  # create a namespace, and its tenant
  freshet namespace create sales/eu --parents

  # keep acknowledged messages for seven days
  freshet namespace update sales/eu --set retention=7d

  # show its settings
  freshet namespace describe sales/eu`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(newNamespaceCreate(env), newNamespaceList(env), newNamespaceDescribe(env), newNamespaceUpdate(env),
		newNamespaceDelete(env))
	return cmd
}

// namespaceArg requires one argument of the form tenant/namespace.
func namespaceArg(cmd *cobra.Command, given []string) error {
	if err := command.Args(0, "the namespace, tenant/namespace")(cmd, given); err != nil {
		return err
	}
	tenant, name, ok := strings.Cut(given[0], "/")
	if !ok || tenant == "" || name == "" || strings.Contains(name, "/") {
		return command.Usagef(cmd, "namespace %q is not of the form tenant/namespace", given[0])
	}
	return nil
}

// explainNamespace names the namespace or the tenant that does not exist.
func explainNamespace(err error, name string) error {
	var refused *client.Error
	tenant, _, _ := strings.Cut(name, "/")
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return err
	}
	if refused.Message == missingTenant {
		return hint.Add(errs.Newf(errs.NotFound, "tenant %s does not exist", tenant),
			"'freshet tenant list' lists the tenants; 'freshet namespace create %s --parents' creates it too.", name)
	}
	return hint.Add(errs.Newf(errs.NotFound, "namespace %s does not exist", name),
		"'freshet namespace list %s' lists the namespaces of the tenant.", tenant)
}

func newNamespaceCreate(env *command.Env) *cobra.Command {
	var ifNotExists, parents bool
	cmd := &cobra.Command{
		Use:   "create TENANT/NAMESPACE",
		Short: "Create a namespace",
		Example: `  # in an existing tenant
  freshet namespace create public/audit

  # with its tenant
  freshet namespace create sales/eu --parents

  # in a script that may run twice
  freshet namespace create sales/eu --if-not-exists`,
		Args: namespaceArg,
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			if parents {
				if err := ensureParents(cmd.Context(), c, given[0], false); err != nil {
					return err
				}
			}
			err := adminCall(cmd.Context(), c, http.MethodPut, namespacePath(given[0]), nil, nil)
			return created(env, "namespace", given[0], explainNamespace(err, given[0]), ifNotExists)
		}),
	}
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "succeed if the namespace already exists")
	cmd.Flags().BoolVar(&parents, "parents", false, "create the tenant too, if it does not exist")
	return cmd
}

func newNamespaceList(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list [TENANT]",
		Aliases: []string{"ls"},
		Short:   "List the namespaces of a cluster or of a tenant",
		Example: `  # all namespaces that you may see
  freshet namespace list

  # those of one tenant
  freshet namespace list public

  # names only, for scripts
  freshet namespace list -o name`,
		Args:              command.MaxArgs(1),
		ValidArgsFunction: completeTenants(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			names, err := listNamespaces(cmd.Context(), c, given)
			if err != nil {
				return err
			}
			return printNames(env, format, names, "No namespaces.")
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatJSON, output.FormatYAML, output.FormatName)
	return cmd
}

// listNamespaces lists the namespaces of tenants, of all tenants if none is given.
func listNamespaces(ctx context.Context, c *client.Client, tenants []string) ([]string, error) {
	all := len(tenants) == 0
	if all {
		if err := adminCall(ctx, c, http.MethodGet, "tenants", nil, &tenants); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, tenant := range tenants {
		var found []string
		err := adminCall(ctx, c, http.MethodGet, "namespaces/"+url.PathEscape(tenant), nil, &found)
		if all && errors.Is(err, client.ErrDenied) {
			continue
		}
		if err != nil {
			return nil, explainNamespace(err, tenant+"/NAME")
		}
		names = append(names, found...)
	}
	return names, nil
}

// namespaceDescription is the output of describe.
type namespaceDescription struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings"`
}

func newNamespaceDescribe(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe TENANT/NAMESPACE",
		Short: "Show the settings of a namespace",
		Example: `  # the settings that apply to its topics
  freshet namespace describe public/default

  # as JSON, for scripts
  freshet namespace describe public/default -o json

  # as YAML
  freshet namespace describe public/default -o yaml`,
		Args:              namespaceArg,
		ValidArgsFunction: completeNamespaces(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			if err := requireNamespace(cmd.Context(), c, given[0]); err != nil {
				return err
			}
			found, err := readSettings(cmd.Context(), c, namespacePath(given[0]), false)
			if err != nil {
				return explainNamespace(err, given[0])
			}
			if format.IsData() {
				return output.Value(env.Out, format, namespaceDescription{given[0], found})
			}
			if _, err := fmt.Fprintf(env.Out, "Name:          %s\n", output.Clean(given[0])); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(found)) {
				_, err := fmt.Fprintf(env.Out, "Setting:       %s=%s\n", name, output.Clean(found[name]))
				if err != nil {
					return err
				}
			}
			return nil
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func newNamespaceUpdate(env *command.Env) *cobra.Command {
	changes := settingChanges{}
	cmd := &cobra.Command{
		Use:   "update TENANT/NAMESPACE",
		Short: "Change the settings of a namespace",
		Long: "Change the settings of a namespace, which are the defaults of its topics:\n\n" +
			settingHelp(false),
		Example: `  # keep acknowledged messages for seven days, at most 10 GiB of each topic
  freshet namespace update public/default --set retention=7d,10GiB

  # messages expire after a day
  freshet namespace update public/default --set message-ttl=24h

  # the default again
  freshet namespace update public/default --unset retention --unset message-ttl`,
		Args:              namespaceArg,
		ValidArgsFunction: completeNamespaces(env),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := changes.check(cmd); err != nil {
				return err
			}
			if len(changes.values)+len(changes.remove) == 0 {
				return command.Usagef(cmd, "nothing to change; use --set or --unset")
			}
			return env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
				if err := changes.apply(cmd.Context(), c, namespacePath(given[0])); err != nil {
					return explainNamespace(err, given[0])
				}
				return env.Done(command.Result{Kind: "namespace", Name: given[0], Action: "updated"},
					"namespace %s updated", given[0])
			})(cmd, given)
		},
	}
	changes.addFlags(cmd)
	return cmd
}

func newNamespaceDelete(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "delete TENANT/NAMESPACE",
		Aliases: []string{"rm"},
		Short:   "Delete a namespace without topics",
		Example: `  # list its topics
  freshet topic list sales/eu

  # delete the namespace
  freshet namespace delete sales/eu

  # list the remaining namespaces
  freshet namespace list`,
		Args:              namespaceArg,
		ValidArgsFunction: completeNamespaces(env),
		RunE: env.OnCluster(func(cmd *cobra.Command, c *client.Client, given []string) error {
			err := adminCall(cmd.Context(), c, http.MethodDelete, namespacePath(given[0]), nil, nil)
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "Delete its topics first; 'freshet topic list %s' lists them.", given[0])
			}
			if err != nil {
				return explainNamespace(err, given[0])
			}
			return env.Done(command.Result{Kind: "namespace", Name: given[0], Action: "deleted"},
				"namespace %s deleted", given[0])
		}),
	}
}

// completeNamespaces completes the first argument with the names of namespaces.
func completeNamespaces(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := env.ClusterClient(cmd.Context())
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		names, err := listNamespaces(cmd.Context(), c, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
