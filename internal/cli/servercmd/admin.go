package servercmd

import (
	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
)

// newAdmin returns the commands for which the operator needs the data directory of the
// server.
func newAdmin(server Server) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Administer a server on its own machine",
		Long: `Administer a server on its own machine. These commands use its data directory: a user who
can read it has the permissions of the system administrator.`,
		Example: `  # sign in to the console
  freshet admin link

  # replace lost credentials of the administrator
  freshet admin reset-credentials

  # replace leaked credentials of another account
  freshet admin reset-credentials --organization acme --service-account ci --out ci.json

  # rotate the key for secrets at rest
  freshet admin encryption-key rotate

  # list the keys that sign tokens
  freshet admin signing-key list`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLink(), newResetCredentials(), newEncryptionKey(server), newSigningKey())
	return cmd
}
