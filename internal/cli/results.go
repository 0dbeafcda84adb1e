package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/ensemblecmd"
)

// reporting lists the commands that report what they have done with command.Env.Done.
var reporting = []string{
	"topic create", "topic update", "topic delete",
	"subscription create", "subscription update", "subscription reset", "subscription delete",
	"group reset", "group delete", "ack", "nack", "dead-letter replay",
	"tenant create", "tenant delete", "namespace create", "namespace update", "namespace delete",
	"org create", "org delete", "sa create", "sa credentials", "sa rotate", "sa delete",
	"user create", "user delete", "grant", "ungrant",
	"apikey revoke", "schema delete", "schema import",
	"ensemble init", "ensemble join", "ensemble rejoin", "ensemble replace", "ensemble accept-loss",
	"ensemble repair",
	"login", "logout", "context use", "context delete", "delete", "wait", "edit",
}

// addResultFlags adds -o to the commands that report what they have done.
func addResultFlags(root *cobra.Command, env *command.Env) {
	for _, path := range reporting {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd == root {
			panic("cli: " + path + " is not a command; correct the list of reporting commands")
		}
		env.AddResultFlag(cmd.Flags())
		ensemblecmd.KeepOutput(cmd, env)
	}
}
