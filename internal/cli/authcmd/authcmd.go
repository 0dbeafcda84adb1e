// Package authcmd has the commands about who speaks to which server: signing in,
// contexts, tokens, and the way for kubectl.
package authcmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// Commands makes the family.
func Commands(env *command.Env) []*cobra.Command {
	return command.InGroup(command.GroupConnect, newLogin(env), newLogout(env), newContext(env), newAuth(env),
		newKubeconfig(env))
}
