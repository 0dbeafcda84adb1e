package apikeycmd

import (
	"github.com/spf13/cobra"

	"freshet/client/resources"
	"freshet/internal/cli/command"
)

// completeKeys completes arguments with the names of keys: the first one, or all.
func completeKeys(env *command.Env, all bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 && !all {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return env.ObjectNames(cmd.Context(), resources.APIKeys), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAccount completes --account with the names of service accounts.
func completeAccount(cmd *cobra.Command, env *command.Env) {
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("account",
		func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return env.ObjectNames(cmd.Context(), resources.ServiceAccounts), cobra.ShellCompDirectiveNoFileComp
		})
}
