// Package clustercmd has the commands of whoever runs a group of servers: making
// its certificates and secrets (init), unpacking them on a member's machine (join),
// seeing how the members do (status), having one give up what it leads (step-down),
// putting an empty machine in the place of one that is lost (replace), and going on when
// a log is lost (accept-loss).
package clustercmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// Commands makes the family.
func Commands(env *command.Env) []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run several servers as one group",
		Long: `Run three or five servers as one group, which survives the loss of any one (or of
two out of five). Every member answers every client.

The group's certificates and secrets are made once (init), and each member's part is
brought to its machine (join). Then 'freshet serve' starts the member.`,
		Example: `  # on your own machine: one bundle for each member, in ./freshet-group
  freshet cluster init --base-url https://freshet.example.com a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # on each machine, with its bundle
  freshet cluster join a.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml
  freshet serve --config /etc/freshet.yaml

  # and when all run
  freshet cluster status`,
		Args: command.NoArgs,
		RunE: command.Help,
	}
	cmd.AddCommand(command.Offline(newInit(env), newJoin(env))...)
	cmd.AddCommand(newStatus(env), newStepDown(env), newReplace(env), newAcceptLoss(env))
	return command.InGroup(command.GroupServer, cmd)
}
