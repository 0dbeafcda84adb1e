package servercmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

func newVersion() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  # as text
  freshet version

  # as JSON, for scripts
  freshet version -o json

  # print the commit
  freshet version -o yaml | sed -n 's/^commit: //p'`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd, format)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func printVersion(cmd *cobra.Command, format output.Format) error {
	info := version.Get()
	if format != output.FormatText {
		return output.Value(cmd.OutOrStdout(), format, info)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), VersionText())
	return err
}

// VersionText returns the version of this program on one line.
func VersionText() string {
	info := version.Get()
	return fmt.Sprintf("freshet %s (%s, %s %s/%s)", info.Version, info.Commit, info.Go, info.OS, info.Arch)
}
