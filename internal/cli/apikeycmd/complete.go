package apikeycmd

import (
	"github.com/spf13/cobra"

	"freshet.dev/client/resources"
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
	completeFlag(cmd, env, "account", resources.ServiceAccounts)
}

// completeInstance completes --instance with the names of instances.
func completeInstance(cmd *cobra.Command, env *command.Env) {
	completeFlag(cmd, env, "instance", resources.MessagingInstances)
}

func completeFlag(cmd *cobra.Command, env *command.Env, flag string, kind resources.Kind) {
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag,
		func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return env.ObjectNames(cmd.Context(), kind), cobra.ShellCompDirectiveNoFileComp
		})
}
