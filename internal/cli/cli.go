// Package cli is the command line: it reads arguments, flags and the
// configuration file, calls what does the work, and turns the outcome into
// text and an exit code. Only it and cmd know cobra; it never ends the
// process itself. The server is handed in, so that the client commands can be
// tested without one.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"freshet/internal/backup"
	"freshet/internal/config"
	"freshet/internal/errs"
)

// Server is what the command line needs of the server.
type Server struct {
	// Run serves until the context ends; it reports on out. read reads the
	// configuration again, with the same flags laid over it.
	Run func(ctx context.Context, cfg *config.Config, read func() (*config.Config, error), out io.Writer) error
	// SealedSecrets counts what is stored under each encryption key.
	SealedSecrets func(ctx context.Context, cfg *config.Config, active string) (map[string]int, error)
	// Restore makes a data directory of a backup.
	Restore func(ctx context.Context, r backup.RestoreOptions) (*backup.Manifest, error)
	// Check verifies the data directory of a stopped server.
	Check func(ctx context.Context, cfg *config.Config, report CheckReport) error
}

// Streams are the process's input and output.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// The exit codes, part of the command line's contract.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitNotFound = 3
	ExitDenied   = 4
	ExitConflict = 5
	ExitTimeout  = 6
)

// Execute runs one command line and returns the exit code.
func Execute(ctx context.Context, args []string, streams Streams, server Server) int {
	root := newRoot(streams, server)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	_, _ = fmt.Fprintln(streams.Err, "freshet:", err) // nothing is left to tell when stderr is gone
	if hint := hintFor(err); hint != "" {
		_, _ = fmt.Fprintln(streams.Err, hint)
	}
	return exitCode(err)
}

func newRoot(streams Streams, server Server) *cobra.Command {
	root := &cobra.Command{
		Use:   "freshet",
		Short: "A streaming cloud in one binary",
		Long: `Freshet is a self-hosted streaming cloud in one binary: a Kubernetes-style
resource API, and for every cluster an HTTP message interface and a schema
registry.

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 denied, 5 conflict, 6 timeout.`,
		Example: `  # start everything, with data in ./freshet-data
  freshet serve

  # check a configuration file before using it
  freshet config check freshet.yaml

  # point kubectl at the server on this machine
  freshet kubeconfig > kubeconfig`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%w", err) })
	root.AddCommand(newServe(server), newCheck(server), newConfig(), newHealth(), newKubeconfig(), newAdmin(server),
		newBackup(), newRestore(server), newVersion())
	return root
}

// usageError is a command line that makes no sense, as opposed to one that
// could not be carried out.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

func noArgs(cmd *cobra.Command, args []string) error { return atMost(0)(cmd, args) }

func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) <= n:
			return nil
		case cmd.HasSubCommands():
			return usagef(cmd, "unknown command %q", args[0])
		default:
			return usagef(cmd, "unexpected argument %q", args[n])
		}
	}
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	}
	switch errs.KindOf(err) {
	case errs.NotFound:
		return ExitNotFound
	case errs.Denied, errs.Unauthenticated:
		return ExitDenied
	case errs.Conflict, errs.Precondition:
		return ExitConflict
	default:
		return ExitError
	}
}

func hintFor(err error) string {
	var usage *usageError
	if errors.As(err, &usage) {
		return fmt.Sprintf("Run '%s --help' for what it takes.", usage.command)
	}
	return ""
}
