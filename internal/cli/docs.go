package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/cli/reference"
)

// newDocs writes the commands' documentation, for packages and for the reference
// in the repository. It is hidden: who uses the commands has --help.
func newDocs(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:    "docs markdown|man|json [DIRECTORY]",
		Short:  "Write the reference of the commands",
		Hidden: true,
		Example: `  # one Markdown page per family of commands
  freshet docs markdown docs/reference/cli

  # man pages, for a package
  freshet docs man /usr/share/man/man1

  # for programs
  freshet docs json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] != "json" && len(args) == 1 {
				return command.Usagef(cmd,
					"say what to write, and where to: markdown DIRECTORY, man DIRECTORY, or json")
			}
			return command.AtMost(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			tree := reference.Tree(cmd.Root())
			switch args[0] {
			case "json":
				return output.JSON(env.Out, tree)
			case "markdown":
				return writePages(args[1], reference.Markdown(tree))
			case "man":
				return writePages(args[1], reference.Man(tree, version.Get().Version))
			}
			return command.Usagef(cmd, "there is no form %q", args[0])
		},
	}
}

func writePages(directory string, pages map[string]string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // documentation is for everybody
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(pages[name]), 0o644); err != nil { //nolint:gosec // the same
			return fmt.Errorf("writing the reference: %w", err)
		}
	}
	return nil
}
