package servercmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// newAdmin groups what the operator of a server does with its data directory at
// hand.
func newAdmin(server Server) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Look after a server from its own machine",
		Long: `Look after a server from its own machine. These commands need its data
directory: whoever can read that is the server's administrator.`,
		Example: `  # sign in to the console
  freshet admin link

  # the administrator's credentials are lost
  freshet admin reset-credentials

  # those of another account have leaked
  freshet admin reset-credentials --organization acme --service-account ci --out ci.json

  # a new key for secrets at rest
  freshet admin encryption-key rotate

  # a key that signs tokens has leaked: which are there?
  freshet admin signing-key list`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLink(), newResetCredentials(), newEncryptionKey(server), newSigningKey())
	return cmd
}
