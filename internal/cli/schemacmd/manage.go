package schemacmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/client/schemas"
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
		Long: `Delete a subject or one version of it. What is deleted disappears from lists, and its
ids still work for readers of old data. The second step, --permanent, removes it for
good: messages written with it cannot be read any more.`,
		Example: `  # one version
  freshet schema delete orders-value 1

  # the whole subject
  freshet schema delete orders-value

  # and now for good
  freshet schema delete orders-value --permanent`,
		Args:              args(1, "the subject"),
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
					return twoSteps(err, strings.Join(given, " "))
				}
				what = fmt.Sprintf("version %d of %s", number, given[0])
			} else if _, err := r.DeleteSubject(cmd.Context(), given[0], permanent); err != nil {
				return twoSteps(err, given[0])
			}
			done := "deleted; its ids still work"
			if permanent {
				done = "is gone for good"
			}
			_, err := fmt.Fprintln(env.Out, what, done)
			return err
		}),
	}
	cmd.Flags().BoolVar(&permanent, "permanent", false, "the second step: remove what is deleted for good")
	return cmd
}

// twoSteps says which of the two steps is next.
func twoSteps(err error, what string) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case 40404, 40406:
		return hint.Add(err, "It is deleted already; 'freshet schema delete %s --permanent' removes it for good.", what)
	case 40405, 40407:
		return hint.Add(err, "First 'freshet schema delete %s', then the same with --permanent.", what)
	case 42206:
		return hint.Add(err, "Delete first what refers to it.")
	}
	return err
}

func newExport(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the whole registry to a file",
		Long: `Write the whole registry as lines of JSON, with ids, versions and levels, to a file or
to standard output. 'freshet schema import' reads it.`,
		Example: `  # to a file
  freshet schema export registry.jsonl

  # to a pipe
  freshet schema export | gzip > registry.jsonl.gz

  # into another cluster, or another server
  freshet schema export | freshet schema import -`,
		Args: command.AtMost(1),
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

func newImport(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Read a registry that was exported",
		Long: `Read what 'freshet schema export' wrote, with its ids and versions. What is there
already is passed over, so it can be repeated. It needs the right to write everywhere.`,
		Example: `  # from a file
  freshet schema import registry.jsonl

  # from a pipe
  freshet schema export | freshet schema import -

  # once more changes nothing
  freshet schema import registry.jsonl`,
		Args: args(0, "a file, or - for standard input"),
		RunE: func(cmd *cobra.Command, given []string) error {
			in := env.In
			if given[0] != "-" {
				file, err := os.Open(given[0])
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }() // it was only read
				in = file
			}
			r, c, err := connect(cmd, env)
			if err != nil {
				return err
			}
			defer c.Close()
			done, err := r.Import(cmd.Context(), in)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Out, "%d versions and %d levels written, %d lines were known\n", done.Versions,
				done.Levels, done.Known)
			return err
		},
	}
}

func newLevel(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "level SUBJECT [LEVEL]",
		Short: "Show or set what a new version must be compatible with",
		Long:  "Show or set a subject's compatibility level:\n\n" + levelHelp(),
		Example: `  # what is demanded?
  freshet schema level orders-value

  # readers and writers may be upgraded in any order
  freshet schema level orders-value FULL

  # before the first version is registered
  freshet schema level payments-value backward_transitive`,
		Args:              args(1, "the subject"),
		ValidArgsFunction: completeSubjects(env),
		RunE: onRegistry(env, func(cmd *cobra.Command, r *schemas.Registry, given []string) error {
			if len(given) > 1 {
				level := strings.ToUpper(given[1])
				if _, ok := levels[level]; !ok {
					return command.Usagef(cmd, "there is no level %s", given[1])
				}
				if err := r.SetLevel(cmd.Context(), given[0], level); err != nil {
					return err
				}
			}
			level, err := r.Level(cmd.Context(), given[0])
			if err != nil {
				return err
			}
			if len(given) > 1 || output.IsTerminal(env.Out) {
				_, err = fmt.Fprintf(env.Out, "%s: %s\n", level, levels[level])
			} else {
				_, err = fmt.Fprintln(env.Out, level)
			}
			return err
		}),
	}
}

func newMode(env *command.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "mode [MODE]",
		Short: "Show or set the registry's mode",
		Long: `Show or set the mode of the whole registry: READWRITE, READONLY, READONLY_OVERRIDE,
or IMPORT, in which schemas keep the ids that they are registered with.`,
		Example: `  # which is it?
  freshet schema mode

  # no changes for a while
  freshet schema mode readonly

  # back to normal
  freshet schema mode readwrite`,
		Args: command.AtMost(1),
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
			_, err = fmt.Fprintln(env.Out, mode)
			return err
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "to IMPORT although there are subjects")
	return cmd
}
