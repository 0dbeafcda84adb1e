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
	"freshet/internal/cli/output"
)

// sheets are the cheat sheets: commands to copy.
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
		Short: "Show a cheat sheet with commands to copy",
		Example: `  # list the cheat sheets
  freshet cheat

  # messages
  freshet cheat messages

  # accounts, keys and roles
  freshet cheat access`,
		Args: command.MaxArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := sheetNames()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return env.Println(strings.Join(names, "\n"))
			}
			if !slices.Contains(names, args[0]) {
				return hint.Add(fmt.Errorf("cheat sheet %q does not exist", args[0]), "Use one of: %s.",
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

// consoleAddress is the output of open in the form of -o json.
type consoleAddress struct {
	URL string `json:"url"`
}

func newOpen(env *command.Env) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Print the address of the console",
		Long:  `Print the address of the web console of the chosen server, to open it in a browser.`,
		Example: `  # of the server in use
  freshet open

  # of the server of a context
  freshet open --context local

  # check that it responds
  curl -s -o console.html --cacert freshet-data/tls/ca.crt "$(freshet open)"`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			at, err := env.Context()
			if err != nil {
				return err
			}
			if format.IsData() {
				return output.Value(env.Out, format, consoleAddress{at.Server + "/console/"})
			}
			return env.Println(at.Server + "/console/")
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}
