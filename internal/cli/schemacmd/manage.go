package schemacmd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

func newDelete(env *command.Env) *cobra.Command {
	var permanent bool
	cmd := &cobra.Command{
		Use:     "delete SUBJECT [VERSION]",
		Aliases: []string{"rm"},
		Short:   "Delete a subject or one version of it, in two steps",
		Long: `Delete a subject or one version of it. Deleted versions are not listed, but their ids
still work, so that old data can be read. The second step, --permanent, removes them
permanently: messages that were written with them can no longer be read.`,
		Example: `  # one version
  freshet schema delete orders-value 1

  # the whole subject
  freshet schema delete orders-value

  # remove it permanently
  freshet schema delete orders-value --permanent`,
		Args:              command.Args(1, "the subject"),
		ValidArgsFunction: completeSubjects(env),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			what := given[0]
			if len(given) > 1 {
				version, err := parseVersion(given[1])
				if err != nil {
					return command.Usagef(cmd, "%w", err)
				}
				number, err := r.DeleteVersion(cmd.Context(), given[0], version, permanent)
				if err != nil {
					return explainDelete(err, strings.Join(given, " "))
				}
				what = fmt.Sprintf("version %d of %s", number, given[0])
			} else if _, err := r.DeleteSubject(cmd.Context(), given[0], permanent); err != nil {
				return explainDelete(err, given[0])
			}
			done := "deleted; its ids still work"
			if permanent {
				done = "permanently deleted"
			}
			return env.Done(command.Result{Kind: "schema", Name: strings.Join(given, " "), Action: "deleted"},
				"%s %s", what, done)
		}),
	}
	cmd.Flags().BoolVar(&permanent, "permanent", false, "permanently remove a deleted subject or version")
	return cmd
}

// explainDelete adds a hint at the next of the two steps, or at the cause.
func explainDelete(err error, what string) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case 40404, 40406:
		return hint.Add(err,
			"It is already deleted; remove it permanently with 'freshet schema delete %s --permanent'.", what)
	case 40405, 40407:
		return hint.Add(err, "Run 'freshet schema delete %s' first, then the same with --permanent.", what)
	case 42206:
		return hint.Add(err, "Delete the schemas that refer to it first.")
	}
	return err
}

func newExport(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "export [FILE]",
		Short: "Export the whole registry",
		Long: `Export the whole registry as lines of JSON, with ids, versions and levels, to a file or
to standard output. 'freshet schema import' reads it.`,
		Example: `  # to a file
  freshet schema export registry.jsonl

  # to a pipe
  freshet schema export | gzip > registry.jsonl.gz

  # to another cluster, or another server
  freshet schema export | freshet schema import -`,
		Args: command.MaxArgs(1),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) (err error) {
			if len(given) == 0 || given[0] == "-" {
				return r.Export(cmd.Context(), env.Out)
			}
			file, err := os.Create(given[0])
			if err != nil {
				return err
			}
			return errors.Join(r.Export(cmd.Context(), file), file.Close())
		}),
	}
}

func newLevel(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "level SUBJECT [LEVEL]",
		Short: "Show or set the compatibility level of a subject",
		Long:  "Show or set the compatibility level of a subject:\n\n" + levelHelp(),
		Example: `  # show the level
  freshet schema level orders-value

  # consumers and producers can be upgraded in any order
  freshet schema level orders-value FULL

  # set it before the first version is registered
  freshet schema level payments-value backward_transitive`,
		Args:              command.Args(1, "the subject"),
		ValidArgsFunction: completeSubjects(env),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			if len(given) > 1 {
				level := strings.ToUpper(given[1])
				if _, ok := levels[level]; !ok {
					return command.Usagef(cmd, "level %s does not exist; use one of %s", given[1],
						strings.Join(slices.Sorted(maps.Keys(levels)), ", "))
				}
				if err := r.SetLevel(cmd.Context(), given[0], level); err != nil {
					return err
				}
			}
			level, err := r.Level(cmd.Context(), given[0])
			if err != nil {
				return err
			}
			switch {
			case format.IsData():
				err = output.Value(env.Out, format, map[string]string{"subject": given[0], "level": level})
			case len(given) > 1 || output.IsTerminal(env.Out):
				_, err = fmt.Fprintf(env.Out, "%s: %s\n", level, levels[level])
			default:
				_, err = fmt.Fprintln(env.Out, level)
			}
			return err
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func newMode(env *command.Env) *cobra.Command {
	var force bool
	var format output.Format
	cmd := &cobra.Command{
		Use:   "mode [MODE]",
		Short: "Show or set the registry's mode",
		Long: `Show or set the mode of the whole registry: READWRITE, READONLY, READONLY_OVERRIDE,
or IMPORT, in which schemas keep the ids that they are registered with.`,
		Example: `  # show the mode
  freshet schema mode

  # reject changes
  freshet schema mode readonly

  # accept changes again
  freshet schema mode readwrite`,
		Args: command.MaxArgs(1),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			if len(given) > 0 {
				if err := r.SetMode(cmd.Context(), strings.ToUpper(given[0]), force); err != nil {
					return err
				}
			}
			mode, err := r.Mode(cmd.Context())
			if err != nil {
				return err
			}
			if format.IsData() {
				return output.Value(env.Out, format, map[string]string{"mode": mode})
			}
			_, err = fmt.Fprintln(env.Out, mode)
			return err
		}),
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	cmd.Flags().BoolVar(&force, "force", false, "set the mode IMPORT even if the registry has subjects")
	return cmd
}
