//go:build cli

package main

import (
	"context"
	"io"

	"freshet/internal/cli/command"
	"freshet/internal/cli/servercmd"
	"freshet/internal/config"
	"freshet/internal/ops/backup"
)

// operations rejects the operations of the server on this machine. It implements cli.Server.
type operations struct{}

// Run implements servercmd.Server.
func (operations) Run(context.Context, *config.Config, func() (*config.Config, error), io.Writer, []string) error {
	return command.ErrNoServer
}

// SealedSecrets implements servercmd.Server.
func (operations) SealedSecrets(context.Context, *config.Config, string) (map[string]int, error) {
	return nil, command.ErrNoServer
}

// Restore implements servercmd.Server.
func (operations) Restore(context.Context, backup.RestoreOptions) (*backup.Manifest, error) {
	return nil, command.ErrNoServer
}

// Check implements servercmd.Server.
func (operations) Check(context.Context, *config.Config, servercmd.CheckReport) error {
	return command.ErrNoServer
}

// Migrate implements servercmd.Server.
func (operations) Migrate(context.Context, string, *config.Config, servercmd.MigrateReport) error {
	return command.ErrNoServer
}

// Rejoin implements ensemblecmd.Server.
func (operations) Rejoin(context.Context, *config.Config) (damage string, err error) {
	return "", command.ErrNoServer
}

// Formats implements doctorcmd.Inspector.
func (operations) Formats(string) (older bool, err error) { return false, command.ErrNoServer }

// InspectNATS implements doctorcmd.Inspector.
func (operations) InspectNATS(context.Context, *config.Config) (description string, problems,
	warnings []string, err error,
) {
	return "", nil, nil, command.ErrNoServer
}

// WriteSite implements cli.Documentation.
func (operations) WriteSite(string) error { return command.ErrNoServer }
