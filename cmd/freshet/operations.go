//go:build !cli

package main

import (
	"context"
	"io"

	"freshet/internal/config"
	"freshet/internal/ops/backup"
	"freshet/internal/ops/datadir"
	"freshet/internal/server"
	"freshet/internal/server/check"
	"freshet/internal/server/migrate"
	"freshet/internal/server/rejoin"
	"freshet/internal/server/restore"
	"freshet/internal/server/sealed"
	"freshet/internal/surfaces/docsite"
)

// operations are the operations of the server on this machine. It implements cli.Server.
type operations struct{}

// Run implements servercmd.Server.
func (operations) Run(ctx context.Context, cfg *config.Config, read func() (*config.Config, error), out io.Writer,
	exports []string,
) error {
	return server.Run(ctx, cfg, read, out, exports)
}

// SealedSecrets implements servercmd.Server.
func (operations) SealedSecrets(ctx context.Context, cfg *config.Config, active string) (map[string]int, error) {
	return sealed.Secrets(ctx, cfg, active)
}

// Restore implements servercmd.Server.
func (operations) Restore(ctx context.Context, opts backup.RestoreOptions) (*backup.Manifest, error) {
	return restore.Directory(ctx, opts)
}

// Check implements servercmd.Server.
func (operations) Check(ctx context.Context, cfg *config.Config, report check.Report) error {
	return check.Directory(ctx, cfg, report)
}

// Migrate implements servercmd.Server.
func (operations) Migrate(ctx context.Context, from string, cfg *config.Config, report migrate.CommandReport) error {
	return migrate.Server(ctx, from, cfg, report)
}

// Rejoin implements ensemblecmd.Server.
func (operations) Rejoin(ctx context.Context, cfg *config.Config) (damage string, err error) {
	return rejoin.Prepare(ctx, cfg)
}

// Formats implements doctorcmd.Inspector.
func (operations) Formats(dir string) (older bool, err error) { return datadir.Formats(dir) }

// InspectNATS implements doctorcmd.Inspector.
func (operations) InspectNATS(ctx context.Context, cfg *config.Config) (description string, problems,
	warnings []string, err error,
) {
	return server.CheckMessageLog(ctx, cfg)
}

// WriteSite implements cli.Documentation.
func (operations) WriteSite(directory string) error {
	site, err := docsite.Embedded()
	if err != nil {
		return err
	}
	return site.Write(directory)
}
