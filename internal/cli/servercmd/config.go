package servercmd

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration",
		Long:  `Check a configuration file, or show the configuration that the server would use.`,
		Example: `  # check a file; every problem is listed with its field
  freshet config check freshet.yaml

  # all settings with their defaults, as a file to start from
  freshet config print > defaults.yaml

  # the effective settings of a file; secrets are never shown
  freshet config print freshet.yaml`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheck(), newConfigPrint())
	return cmd
}

func newConfigCheck() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check whether a configuration file is valid",
		Example: `  # before a restart
  freshet config check freshet.yaml

  # in a script: the exit code is 0 only if the file is valid
  freshet config check freshet.yaml && echo "ready to restart"

  # with an environment variable that sets another domain
  FRESHET_DOMAIN=stream.example freshet config check freshet.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "argument is missing: the file to check")
			}
			return command.MaxArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(args[0])
			if err != nil {
				return err
			}
			if err := cfg.Validate(); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			result := command.Result{Kind: "configuration", Name: args[0], Action: "valid"}
			return result.Print(cmd.OutOrStdout(), format, "%s is valid", args[0])
		},
	}
	command.AddResultFlag(cmd.Flags(), &format)
	return cmd
}

func newConfigPrint() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "print [FILE]",
		Short: "Print the effective configuration",
		Example: `  # the defaults, as a file to start from
  freshet config print > defaults.yaml

  # a file with all defaults filled in
  freshet config print freshet.yaml

  # one setting
  freshet config print -o jsonpath='{.dataDir}'

  # show the differences from the defaults
  diff <(freshet config print) <(freshet config print freshet.yaml) || true`,
		Args: command.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(append(args, "")[0])
			if err != nil {
				return err
			}
			if format == output.FormatYAML {
				return config.Print(cmd.OutOrStdout(), cfg)
			}
			var text bytes.Buffer
			if err := config.Print(&text, cfg); err != nil {
				return err
			}
			return output.Document(cmd.OutOrStdout(), format, text.Bytes())
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatYAML, output.FormatJSON)
	return cmd
}
