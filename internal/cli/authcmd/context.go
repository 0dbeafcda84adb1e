package authcmd

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newContext(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:   "context",
		Short: "List, show and choose the servers that commands use",
		Long: `List, show and choose the servers that commands use. A context names a server, an
organization and a cluster, and the file with your credentials. 'freshet login' creates
one. The context of the server with its data in ./freshet-data is called local; it
always exists, and is the default.

Commands use the context of --context, else of FRESHET_CONTEXT, else the current one,
else local. Contexts are stored in ~/.config/freshet/contexts.yaml, or in the file of
FRESHET_CONFIG.`,
		Example: `  # list all contexts; a star marks the one in use
  freshet context list

  # use another context
  freshet context use local

  # show the server and the credentials in use
  freshet context show`,
	}, newContextList(env), newContextUse(env), newContextShow(env), newContextDelete(env))
}

func newContextList(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the contexts",
		Example: `  # a star marks the one in use
  freshet context list

  # names only, for scripts
  freshet context list -o name

  # with the paths of their credentials
  freshet context list -o wide`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listContexts(env, format) },
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatWide, output.FormatJSON, output.FormatYAML,
		output.FormatName)
	return cmd
}

func listContexts(env *command.Env, format output.Format) error {
	selection := env.Selection()
	file, err := contexts.Load(selection.File)
	if err != nil {
		return err
	}
	all := slices.Clone(file.Contexts)
	if local, err := contexts.Local(selection.DataDir); err == nil {
		all = append(all, local)
	}
	current := cmp.Or(selection.Context, file.Current, contexts.LocalName)
	t := output.Table{
		Columns: append(output.Columns("Current", "Name", "Server", "Organization", "Cluster"),
			output.Column{Name: "Credential", Wide: true}),
		Wide: format == output.FormatWide,
	}
	for _, c := range all {
		marker := ""
		if c.Name == current {
			marker = "*"
		}
		t.Rows = append(t.Rows,
			[]string{
				marker, c.Name, c.Server, c.Organization, cmp.Or(c.Cluster, contexts.DefaultCluster),
				c.Credential.Path(),
			})
	}
	return env.List(format, contexts.File{Current: current, Contexts: all}, &t,
		"No contexts. Create one with 'freshet login CREDENTIALS-FILE', or start a server with 'freshet serve'.")
}

func newContextUse(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Choose the context that commands use",
		Example: `  # the server on this machine
  freshet context use local

  # the other contexts are in the list
  freshet context list

  # for one command only
  freshet --context local context show`,
		Args:              command.OneArg("the name of a context"),
		ValidArgsFunction: completeContexts(env),
		RunE: func(_ *cobra.Command, args []string) error {
			err := contexts.Update(env.Selection().File, func(f *contexts.File) error {
				if _, ok := f.Get(args[0]); !ok && args[0] != contexts.LocalName {
					return errNoContext(args[0])
				}
				f.Current = args[0]
				return nil
			})
			if err != nil {
				return err
			}
			if set := env.Getenv("FRESHET_CONTEXT"); set != "" && set != args[0] {
				return env.Notef("Warning: FRESHET_CONTEXT is %s and takes precedence here.\n", set)
			}
			return env.Done(command.Result{Kind: "context", Name: args[0], Action: "used"},
				"commands use the context %s", args[0])
		},
	}
}

func errNoContext(name string) error {
	return hint.Add(errs.Newf(errs.NotFound, "context %q does not exist", name),
		"'freshet context list' shows all contexts, 'freshet login' creates one.")
}

func newContextShow(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show the server and the credentials that commands use",
		Long: `Show the server and the credentials that commands use: the context in use or the named
one, with the overrides of flags and environment.`,
		Example: `  # the context in use
  freshet context show

  # the server on this machine
  freshet context show local

  # for another organization, as JSON
  freshet context show -n acme -o json`,
		Args:              command.MaxArgs(1),
		ValidArgsFunction: completeContexts(env),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				env.Flags.Context = args[0]
			}
			c, err := env.Context()
			if err != nil {
				return err
			}
			if format != output.FormatText {
				return output.Value(env.Out, format, c)
			}
			return env.Printf(
				"Context:       %s\nServer:        %s\nOrganization:  %s\nCluster:       %s\nCredential:    %s\n",
				cmp.Or(c.Name, "none (from flags and environment)"), c.Server, c.Organization, c.Cluster,
				c.Credential.Source())
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func newContextDelete(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a context and the copy of its credentials",
		Long: `Delete a context, the copy of its credentials that 'freshet login' stored, and all cached
access tokens. A user's session is ended on the server, as with 'freshet logout'. A
service account does not change; if its credentials have leaked, use 'freshet sa rotate'
or 'freshet apikey revoke'.`,
		Example: `  # delete a context
  freshet context delete staging

  # list contexts with their credentials
  freshet context list -o wide

  # use the server on this machine again
  freshet context use local`,
		Args:              command.OneArg("the name of a context"),
		ValidArgsFunction: completeContexts(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return deleteContext(cmd.Context(), env, args[0])
		},
	}
}

// completeContexts completes the first argument with the names of contexts.
func completeContexts(env *command.Env) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		file, err := contexts.Load(env.Selection().File)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return append(file.Names(), contexts.LocalName), cobra.ShellCompDirectiveNoFileComp
	}
}
