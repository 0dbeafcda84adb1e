// Command freshet is the server and its client in one binary. This file holds
// signals, the wiring of the server into the command line, and the exit code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"freshet/internal/cli"
	"freshet/internal/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends ctx; handing the second back to the runtime lets it
	// end a shutdown that takes too long.
	context.AfterFunc(ctx, stop)
	code := cli.Execute(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr},
		cli.Server{
			Run: server.Run, SealedSecrets: server.SealedSecrets, Restore: server.Restore, Check: server.Check,
			Formats: server.Formats, Migrate: server.Migrate, LookAtLog: server.LookAtLog,
		})
	stop()
	os.Exit(code)
}
