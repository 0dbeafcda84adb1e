// Package authcmd implements the commands that connect a user to servers: signing in and
// out, contexts, tokens, and kubeconfig files. Package contexts stores the contexts,
// session the sessions of users, and tokencache the access tokens.
package authcmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(env *command.Env) []*cobra.Command {
	return command.InSection(command.SectionConnect, newLogin(env), newLogout(env), newContext(env), newAuth(env),
		newKubeconfig(env))
}
