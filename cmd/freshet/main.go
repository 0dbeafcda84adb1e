// Command freshet is the server and its command-line client in one binary. It handles
// signals, passes the server's operations to the command line and sets the exit code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"freshet/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal cancels ctx. From then on the runtime handles signals again, so
	// that a second one kills the process when the shutdown takes too long.
	context.AfterFunc(ctx, stop)
	code := cli.Execute(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, operations{})
	stop()
	os.Exit(code)
}
