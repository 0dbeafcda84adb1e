package cli

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

func newCompletion(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that lets your shell complete commands and names",
		Long: `Print the script that lets your shell complete commands, flags, and what the server
has: kinds, names, topics. bash needs the package bash-completion.`,
		Example: `  # bash, in this shell
  source <(freshet completion bash)

  # bash, from the next login on
  mkdir -p ~/.local/share/bash-completion/completions &&
  freshet completion bash > ~/.local/share/bash-completion/completions/freshet

  # zsh
  freshet completion zsh > _freshet

  # fish
  mkdir -p ~/.config/fish/completions && freshet completion fish > ~/.config/fish/completions/freshet.fish`,
		Args:      command.One("a shell: bash, zsh, fish or powershell"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(env.Out, true)
			case "zsh":
				return root.GenZshCompletion(env.Out)
			case "fish":
				return root.GenFishCompletion(env.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(env.Out)
			}
			return command.Usagef(cmd, "there is no completion for %q: bash, zsh, fish or powershell", args[0])
		},
	}
}
