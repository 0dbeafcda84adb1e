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

// Documentation writes the documentation of this version.
type Documentation interface {
	// WriteSite writes the documentation as static pages to a directory.
	WriteSite(directory string) error
}

// newDocs returns the command that writes the command reference, for packagers and for
// docs/reference/cli, and the documentation site. It is hidden because users have --help and
// the server's /docs/.
func newDocs(env *command.Env, documentation Documentation) *cobra.Command {
	return &cobra.Command{
		Use:    "docs markdown|man|json|site [DIRECTORY]",
		Short:  "Write the command reference or the documentation site",
		Hidden: true,
		Example: `  # one Markdown page per family of commands
  freshet docs markdown docs/reference/cli

  # man pages, for a package
  freshet docs man /usr/share/man/man1

  # JSON, for programs
  freshet docs json

  # the documentation as static pages, for any web server
  freshet docs site dist/site`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] != "json" && len(args) == 1 {
				return command.Usagef(cmd,
					"arguments are missing: markdown DIRECTORY, man DIRECTORY, site DIRECTORY, or json")
			}
			return command.MaxArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "site" {
				return documentation.WriteSite(args[1])
			}
			tree := reference.Tree(cmd.Root())
			switch args[0] {
			case "json":
				return output.JSON(env.Out, tree)
			case "markdown":
				return writePages(args[1], reference.Markdown(tree))
			case "man":
				return writePages(args[1], reference.Man(tree, version.Get().Version))
			}
			return command.Usagef(cmd, "format %q does not exist; use markdown, man, site or json", args[0])
		},
	}
}

func writePages(directory string, pages map[string]string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // documentation is world-readable
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(pages[name]), 0o644); err != nil { //nolint:gosec // world-readable
			return fmt.Errorf("writing the reference: %w", err)
		}
	}
	return nil
}
