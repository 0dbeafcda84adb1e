// Package servercmd implements the commands for the operator of a server: serve, its
// configuration, its data directory, backups and health. They run on the machine of the
// server and use no context. They call the server through the interface Server, so that tests
// of the command line do not link the server's packages. Commands for a server on another
// machine are in opscmd, those for ensembles in ensemblecmd.
package servercmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ops/backup"
)

// Server is the server on this machine, running or stopped.
type Server interface {
	// Run serves until the context ends; it prints its start messages on out. read reads the
	// configuration again and applies the same flags; exports are variables that the
	// operator must set so that commands use this server.
	Run(ctx context.Context, cfg *config.Config, read func() (*config.Config, error), out io.Writer,
		exports []string) error
	// SealedSecrets counts the stored secrets by the encryption key that seals them.
	SealedSecrets(ctx context.Context, cfg *config.Config, active string) (map[string]int, error)
	// Restore writes a data directory from a backup.
	Restore(ctx context.Context, r backup.RestoreOptions) (*backup.Manifest, error)
	// Check verifies the data directory of a stopped server.
	Check(ctx context.Context, cfg *config.Config, report CheckReport) error
	// Migrate copies the data directory of a single server into an ensemble.
	Migrate(ctx context.Context, from string, cfg *config.Config, report MigrateReport) error
}

// Commands returns the commands of this package.
func Commands(server Server) []*cobra.Command {
	return command.InSection(command.SectionServer,
		command.Offline(newServe(server), newCheck(server), newConfig(), newHealth(),
			newAdmin(server), newBackup(), newRestore(server), newMigrate(server), newVersion())...)
}
