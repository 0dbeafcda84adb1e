package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet/internal/version"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  # for people
  freshet version

  # for scripts
  freshet version -o json

  # which commit is this?
  freshet version -o json | jq -r .commit`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}

func printVersion(cmd *cobra.Command, output string) error {
	info := version.Get()
	text := []byte(fmt.Sprintf("freshet %s (%s, %s %s/%s)\n", info.Version, info.Commit, info.Go, info.OS, info.Arch))
	var err error
	switch output {
	case "text":
	case "json":
		if text, err = json.MarshalIndent(info, "", "  "); err == nil {
			text = append(text, '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(info)
	default:
		return usagef(cmd, "-o takes text, json or yaml, not %q", output)
	}
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
