package opscmd

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// The sheets are commands to copy. They need no server to be read.
//
//go:embed cheat
var sheets embed.FS

func sheetNames() ([]string, error) {
	files, err := sheets.ReadDir("cheat")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), path.Ext(f.Name())))
	}
	return names, nil
}

func newCheat(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "cheat [TOPIC]",
		Short: "Show the commands for a purpose, to copy",
		Example: `  # which sheets are there?
  freshet cheat

  # messages
  freshet cheat messages

  # accounts, keys and roles
  freshet cheat access`,
		Args: command.AtMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := sheetNames()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				_, err := fmt.Fprintln(env.Out, strings.Join(names, "\n"))
				return err
			}
			if !slices.Contains(names, args[0]) {
				return hint.Add(fmt.Errorf("there is no sheet %q", args[0]), "There are: %s.",
					strings.Join(names, ", "))
			}
			text, err := sheets.ReadFile("cheat/" + args[0] + ".txt")
			if err != nil {
				return err
			}
			_, err = env.Out.Write(text)
			return err
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			names, err := sheetNames()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func newOpen(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "open",
		Short: "Print the address of the console",
		Long:  `Print the address of the console of the chosen server, to open it in a browser.`,
		Example: `  # of the server here
  freshet open

  # of that of a context
  freshet open --context local

  # does it answer?
  curl -s -o console.html --cacert freshet-data/tls/ca.crt "$(freshet open)"`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			at, err := env.Context()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.Out, at.Server+"/console/")
			return err
		},
	}
}
