// Package opscmd has the commands of whoever looks after a server from elsewhere:
// how it does (status), what it can do (bench), and something to look at (demo);
// and the sheets of commands to copy.
// They speak to it through the public client alone.
package opscmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// Commands makes the family.
func Commands(env *command.Env) []*cobra.Command {
	return append(command.InGroup(command.GroupServer, newStatus(env), newBench(env), newDemo(env)),
		command.InGroup(command.GroupConnect, append(command.Offline(newCheat(env)), newOpen(env))...)...)
}

// fieldManager owns the fields that these commands write.
const fieldManager = "freshet-cli"
