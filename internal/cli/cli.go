// Package cli assembles the command line from its command families, runs one command
// line, and maps the outcome to text and an exit code. It never exits the process; cmd
// does. Only cmd, this package and the packages below it import cobra.
//
// Each command family is a package below it: servercmd for operators of a server, authcmd
// for signing in, messagecmd for messages, and so on. Package command has what every
// command uses, contexts chooses the connection, and output prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/apikeycmd"
	"freshet/internal/cli/authcmd"
	"freshet/internal/cli/command"
	"freshet/internal/cli/doctorcmd"
	"freshet/internal/cli/ensemblecmd"
	"freshet/internal/cli/generatecmd"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/identitycmd"
	"freshet/internal/cli/messagecmd"
	"freshet/internal/cli/opscmd"
	"freshet/internal/cli/resourcecmd"
	"freshet/internal/cli/schemacmd"
	"freshet/internal/cli/servercmd"
)

// Streams are the process's input and output.
type Streams = command.Streams

// Server is the server on this machine, as commands call it.
type Server interface {
	servercmd.Server
	doctorcmd.Inspector
	ensemblecmd.Server
	Documentation
}

// The exit codes. They are part of the command line's contract with scripts.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitNotFound = 3
	ExitDenied   = 4
	ExitConflict = 5
	ExitTimeout  = 6
	// ExitInterrupted is the shells' exit code of a program that SIGINT ended.
	ExitInterrupted = 130
)

// Execute runs one command line and returns the exit code.
func Execute(ctx context.Context, args []string, streams Streams, server Server) int {
	env := &command.Env{Streams: streams, Getenv: os.Getenv}
	root := newRoot(env, server)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var quiet command.SilentExit
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &quiet):
		return quiet.Code
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return ExitInterrupted // the user pressed Ctrl-C and needs no message
	}
	err = nameCluster(env, err)
	// A failure to write to stderr cannot be reported.
	_, _ = fmt.Fprintln(streams.Err, "freshet:", linked(env, cmd, err, err.Error()))
	if line := advice(env, cmd, err); line != "" {
		_, _ = fmt.Fprintln(streams.Err, line)
	}
	return exitCode(err)
}

func newRoot(env *command.Env, server Server) *cobra.Command {
	root := &cobra.Command{
		Use:   "freshet",
		Short: "A streaming cloud in one binary",
		Long: `Freshet is a self-hosted streaming cloud in one binary: a Kubernetes-style
resource API, and for every cluster an HTTP message interface, the Kafka protocol
and a schema registry.

Without a context, commands use the server whose data is in ./freshet-data.
'freshet login' creates a context for another server.

Exit codes: 0 ok, 1 error, 2 usage, 3 the named object does not
exist, 4 denied, 5 conflict, 6 timeout, 130 interrupted.`,
		Example: `  # start everything, with data in ./freshet-data
  freshet serve

  # in another terminal, in the same directory: list its resources
  freshet get all

  # send a message and read it back
  freshet topic create greetings
  echo hello | freshet produce greetings
  freshet tail greetings --from earliest --no-follow

  # sign in to another server
  freshet login credentials.json`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          command.NoArgs,
		RunE:          command.Help,
		Version:       servercmd.VersionText(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return command.RejectGlobalFlags(cmd)
		},
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return command.Usagef(cmd, "%w", err) })
	root.SetUsageFunc(usage)
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	env.AddFlags(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: command.SectionConnect, Title: "Connect:"},
		&cobra.Group{ID: command.SectionMessages, Title: "Messages and schemas:"},
		&cobra.Group{ID: command.SectionResources, Title: "Resources and access:"},
		&cobra.Group{ID: command.SectionServer, Title: "Run a server:"},
	)
	for _, family := range [][]*cobra.Command{
		authcmd.Commands(env),
		resourcecmd.Commands(env),
		identitycmd.Commands(env),
		apikeycmd.Commands(env),
		messagecmd.Commands(env),
		schemacmd.Commands(env),
		servercmd.Commands(server),
		ensemblecmd.Commands(env, server),
		doctorcmd.Commands(env, server),
		opscmd.Commands(env),
		generatecmd.Commands(env),
	} {
		root.AddCommand(family...)
	}
	root.AddCommand(command.Offline(newDocs(env, server), newCompletion(env))...)
	addResultFlags(root, env)
	completeFlags(root, env)
	return root
}

// missingCluster is the server's error for a cluster that does not exist.
const missingCluster = "no messaging cluster of this organization has this name"

// nameCluster adds the name of the cluster to the server's error about it.
func nameCluster(env *command.Env, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Message != missingCluster {
		return err
	}
	at, contextErr := env.Context()
	if contextErr != nil {
		return err
	}
	return hint.Add(errs.Newf(errs.NotFound, "cluster %s does not exist in organization %s", at.Cluster,
		at.Organization), "'freshet get mc -n %s' lists its clusters; choose one with --cluster, and the organization "+
		"with -n.", at.Organization)
}

// hintFor returns the line that advises the user after an error: the hint that the
// command attached, else a general hint for that kind of error, else "".
func hintFor(err error) string {
	if line := hint.Of(err); line != "" {
		return line
	}
	switch {
	case errors.Is(err, client.ErrUnauthenticated):
		return "'freshet context show' shows the credentials in use; sign in again with 'freshet login'."
	case errors.Is(err, client.ErrDenied):
		return "'freshet auth whoami' shows who you are, 'freshet can-i --list' your permissions; an administrator " +
			"grants roles with 'freshet grant'."
	case errors.Is(err, client.ErrQuota):
		return "Delete resources or messages that are not needed, or ask the operator of the server for a higher quota."
	case errors.Is(err, context.DeadlineExceeded):
		return "Wait longer with --timeout, or see the cause with 'freshet describe'."
	case errors.Is(err, client.ErrUnavailable):
		return "Does the server run? 'freshet context show' shows the server in use, 'freshet health --server URL' " +
			"whether it responds."
	}
	return ""
}

func exitCode(err error) int {
	var usage *command.UsageError
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	case errors.Is(err, fs.ErrNotExist):
		return ExitError // not found means a named object, not a file
	}
	kind := errs.KindOf(err)
	switch {
	case kind == errs.NotFound, errors.Is(err, client.ErrNotFound):
		return ExitNotFound
	case kind == errs.Denied, kind == errs.Unauthenticated, errors.Is(err, client.ErrDenied),
		errors.Is(err, client.ErrUnauthenticated):
		return ExitDenied
	case kind == errs.Conflict, kind == errs.Precondition, errors.Is(err, client.ErrConflict):
		return ExitConflict
	default:
		return ExitError
	}
}
