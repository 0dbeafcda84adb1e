// Command freshet is the server and its command-line client in one binary. It handles
// signals, passes the server's functions to the command line and sets the exit code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"freshet/internal/cli"
	"freshet/internal/ops/datadir"
	"freshet/internal/server"
	"freshet/internal/server/check"
	"freshet/internal/server/migrate"
	"freshet/internal/server/restore"
	"freshet/internal/server/sealed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal cancels ctx. From then on the runtime handles signals again, so
	// that a second one kills the process when the shutdown takes too long.
	context.AfterFunc(ctx, stop)
	code := cli.Execute(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr},
		cli.Server{
			Run: server.Run, SealedSecrets: sealed.Secrets, Restore: restore.Directory, Check: check.Directory,
			Formats: datadir.Formats, Migrate: migrate.Server, InspectNATS: server.CheckMessageLog,
		})
	stop()
	os.Exit(code)
}
