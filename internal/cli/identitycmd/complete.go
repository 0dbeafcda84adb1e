package identitycmd

import (
	"github.com/spf13/cobra"

	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
)

// completeNames completes arguments with the names of the objects of a kind: the first one, or all.
func completeNames(env *command.Env, kind resources.Kind, all bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 && !all {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return env.ObjectNames(cmd.Context(), kind), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRoles completes the first argument with the names of roles.
func completeRoles(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := env.ObjectNames(cmd.Context(), clusterRoles)
		return append(names, env.ObjectNames(cmd.Context(), organizationRoles)...), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSubjects completes a flag with the accounts and the users of the organization.
func completeSubjects(cmd *cobra.Command, env *command.Env, flag string) {
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag,
		func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			names := env.ObjectNames(cmd.Context(), resources.ServiceAccounts)
			for _, user := range env.ObjectNames(cmd.Context(), users) {
				names = append(names, "user/"+user)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		})
}
