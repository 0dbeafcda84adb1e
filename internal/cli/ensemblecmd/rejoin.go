package ensemblecmd

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/config"
)

// Server is the server on this machine.
type Server interface {
	// Rejoin prepares a stopped member to fetch the data of etcd from the other members, and returns
	// the damage.
	Rejoin(ctx context.Context, cfg *config.Config) (damage string, err error)
}

func newRejoin(env *command.Env, server Server) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rejoin",
		Short: "Let a member with damaged etcd data fetch it from the others",
		Long: `Let a stopped member whose etcd data is damaged or lost fetch it from the other members.
Run the command on the machine of that member while the others run.

The command moves the damaged data into quarantine (the directory integrity in the data
directory), where it is kept for a day. The next start of the member joins the ensemble
again without etcd data and receives it from the others. Shards, keys and certificates of
the member are kept.

The command changes nothing if the data is intact, or if the others are not a majority.
It can be repeated. For a machine that was lost completely, use 'freshet ensemble replace'.`,
		Example: `  # on the machine of the member that refuses to start
  freshet ensemble rejoin --config /etc/freshet.yaml

  # then start it; it fetches its data from the other members
  freshet serve --config /etc/freshet.yaml

  # in a script: with JSON as output
  freshet ensemble rejoin --config /etc/freshet.yaml -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file)
			if err == nil {
				err = cfg.ApplyEnvironment(os.Environ())
			}
			if err != nil {
				return err
			}
			damage, err := server.Rejoin(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			result := command.Result{Kind: "member", Name: cfg.Members.Self, Action: "prepared", File: cfg.DataDir}
			return env.Done(result, `Member %s is prepared to rejoin its ensemble. The damage was:
  %s

Next, start the member. It fetches the data of etcd from the others:
  freshet serve --config %s`, cfg.Members.Self, damage, file)
		},
	}
	cmd.Flags().StringVar(&file, "config", "freshet.yaml", "configuration `file` of the member (YAML)")
	return cmd
}
