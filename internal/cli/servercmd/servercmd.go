// Package servercmd has the commands of whoever runs a server: serve, its
// configuration, its data directory, backups and health. They need the machine of
// the server and no context. The server is handed in, so that its packages are not
// linked into tests of the command line.
package servercmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ops/backup"
)

// Server is what the command line needs of the server.
type Server struct {
	// Run serves until the context ends; it reports on out. read reads the
	// configuration again, with the same flags laid over it; exports are variables
	// that a shell needs before our commands find that server.
	Run func(ctx context.Context, cfg *config.Config, read func() (*config.Config, error), out io.Writer,
		exports []string) error
	// SealedSecrets counts what is stored under each encryption key.
	SealedSecrets func(ctx context.Context, cfg *config.Config, active string) (map[string]int, error)
	// Restore makes a data directory of a backup.
	Restore func(ctx context.Context, r backup.RestoreOptions) (*backup.Manifest, error)
	// Check verifies the data directory of a stopped server.
	Check func(ctx context.Context, cfg *config.Config, report CheckReport) error
	// Formats says whether a data directory was written by an older version; one that
	// this version cannot read is an error.
	Formats func(dir string) (older bool, err error)
	// Migrate brings the data directory of a server that runs alone into a group.
	Migrate func(ctx context.Context, from string, cfg *config.Config, report MigrateReport) error
	// LookAtLog looks at the NATS servers of a configuration (doctorcmd.LookAtLog).
	LookAtLog func(ctx context.Context, cfg *config.Config) (is string, wrong, unsure []string, err error)
}

// Commands makes the family.
func Commands(server Server) []*cobra.Command {
	return command.InGroup(command.GroupServer,
		command.Offline(newServe(server), newCheck(server), newConfig(), newHealth(),
			newAdmin(server), newBackup(), newRestore(server), newMigrate(server), newVersion())...)
}
