// Package ensemblecmd implements the command family `freshet ensemble` for operators of an
// ensemble: create its certificates and secrets (init), install them on a member's machine
// (join), show the members (status), transfer what a member leads (step-down), replace a
// lost member (replace), let a member with damaged etcd data fetch it again (rejoin), accept the
// loss of a shard's messages (accept-loss), and show and repair journals (repair).
//
// init, join and replace read and write the files of internal/ensemble/bundle, rejoin those of
// a stopped member; the other commands call the system API of a running server. The members themselves are in
// internal/ensemble.
//
// `freshet cluster` is the family's former name. It is a hidden alias that prints a
// warning, for one release.
package ensemblecmd

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// Commands returns `freshet ensemble` and its deprecated alias `freshet cluster`.
func Commands(env *command.Env, server Server) []*cobra.Command {
	return command.InSection(command.SectionServer, newEnsemble(env, server), newDeprecatedCluster(env, server))
}

func newEnsemble(env *command.Env, server Server) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:   "ensemble",
		Short: "Run several servers as one ensemble",
		Long: `Run three or five servers as one ensemble, which survives the loss of one member (two
of five). Clients can connect to any member.

'init' creates the certificates and secrets of the ensemble once. 'join' installs each
member's part on its machine. 'freshet serve' then starts the member.`,
		Example: `  # on your own machine: one bundle for each member, in ./freshet-group
  freshet ensemble init --base-url https://freshet.example.com a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # on each machine, with its bundle
  freshet ensemble join a.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml
  freshet serve --config /etc/freshet.yaml

  # when all members run
  freshet ensemble status`,
	}, append(command.Offline(newInit(env), newJoin(env), newRejoin(env, server)),
		newStatus(env), newStepDown(env), newReplace(env), newAcceptLoss(env), newRepair(env))...)
}

// newDeprecatedCluster returns the same commands under the family's former name, so that
// existing scripts work for one more release.
func newDeprecatedCluster(env *command.Env, server Server) *cobra.Command {
	cmd := newEnsemble(env, server)
	cmd.Use = "cluster"
	cmd.Hidden = true
	keepOutput(cmd)
	// cobra runs only the nearest PersistentPreRunE, so this one also does what the
	// root command's would do. cobra's own Deprecated field would print to standard output.
	cmd.PersistentPreRunE = func(sub *cobra.Command, _ []string) error {
		_, _ = fmt.Fprintln(env.Err, `Warning: "freshet cluster" is deprecated; use "freshet ensemble"`)
		return command.RejectGlobalFlags(sub)
	}
	return cmd
}

// KeepOutput lets --output of 'ensemble init' name the directory, as before it was the format, if the value has a path
// separator. It does nothing for other commands.
func KeepOutput(cmd *cobra.Command, env *command.Env) {
	if cmd.CommandPath() != "freshet ensemble init" {
		return
	}
	output.AcceptFormer(cmd.Flags(), func(text string) (bool, error) {
		if !strings.ContainsRune(text, filepath.Separator) {
			return false, nil
		}
		_, _ = fmt.Fprintf(env.Err, "Warning: --output is the format now; name the directory with --out %s.\n", text)
		return true, cmd.Flags().Set("out", text)
	})
}

// keepOutput makes --output of the alias's init the directory, as it was under the former name.
func keepOutput(family *cobra.Command) {
	for _, cmd := range family.Commands() {
		if out := cmd.Flags().Lookup("out"); out != nil {
			cmd.Flags().Var(out.Value, "output", out.Usage)
		}
	}
}
