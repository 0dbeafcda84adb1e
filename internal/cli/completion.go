package cli

import (
	"context"

	"github.com/spf13/cobra"

	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
)

// completeFlags registers completions for flag values: the existing contexts, organizations
// and clusters, and the output formats of each command.
func completeFlags(root *cobra.Command, env *command.Env) {
	offer := func(flag string, values func(ctx context.Context) []string) {
		// RegisterFlagCompletionFunc fails only for a flag that does not exist.
		_ = root.RegisterFlagCompletionFunc(flag,
			func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return values(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
			})
	}
	offer("context", func(context.Context) []string {
		file, err := contexts.Load(env.Selection().File)
		if err != nil {
			return nil
		}
		return append(file.Names(), contexts.LocalName)
	})
	offer("organization", func(ctx context.Context) []string { return env.ObjectNames(ctx, resources.Organizations) })
	offer("cluster", func(ctx context.Context) []string { return env.ObjectNames(ctx, resources.MessagingClusters) })
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if formats := output.Formats(cmd.Flags()); formats != nil {
			// Formats found the flag, so it exists.
			_ = cmd.RegisterFlagCompletionFunc("output",
				cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func newCompletion(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completion script of a shell",
		Long: `Print the script with which a shell completes commands, flags, and the names of the
server's kinds, objects and topics. bash needs the package bash-completion.`,
		Example: `  # bash, in this shell
  source <(freshet completion bash)

  # bash, for every new login shell
  mkdir -p ~/.local/share/bash-completion/completions &&
  freshet completion bash > ~/.local/share/bash-completion/completions/freshet

  # zsh
  freshet completion zsh > _freshet

  # fish
  mkdir -p ~/.config/fish/completions && freshet completion fish > ~/.config/fish/completions/freshet.fish`,
		Args:      command.OneArg("a shell: bash, zsh, fish or powershell"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE:      env.CompletionScript,
	}
}
