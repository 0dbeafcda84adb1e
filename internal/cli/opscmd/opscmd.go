// Package opscmd implements commands for operators of a server on another machine: its
// status (status), its performance (bench), demo data (demo), the address of the console
// (open), and cheat sheets (cheat). They use only the public package client. Commands that
// need the server's machine are in servercmd.
package opscmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(env *command.Env) []*cobra.Command {
	return append(command.InSection(command.SectionServer, newStatus(env), newBench(env), newDemo(env)),
		command.InSection(command.SectionConnect, append(command.Offline(newCheat(env)), newOpen(env))...)...)
}

// fieldManager is the field manager of the objects that these commands write.
const fieldManager = "freshet-cli"
