// Command demo runs a group of three members on loopback under load and shows it: who owns
// what, what each member costs, what clients get, and what becomes of all that when a
// member is killed, paused, stopped and brought back, by single keys. What it shows
// comes from the members' own interfaces, asked at one that is there. `make
// cluster-demo` starts it; docs/howto/run-three-machines.md describes it.
//
// Without a terminal it prints the table every few seconds, kills and revives a
// member once, and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"freshet/test/cluster/chaos"
	"freshet/test/testserver"
)

func main() {
	length := flag.Duration("time", 0, "how long it runs; until q is pressed when 0, half a minute without a terminal")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *length); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is deferred that matters
	}
}

func run(ctx context.Context, length time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "freshet-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Println("Starting three members in", dir)
	group, err := chaos.NewGroup(ctx, chaos.GroupOptions{Binary: binary, Dir: dir}, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	if err := group.Start(ctx); err != nil {
		return err
	}
	w, err := newWork(ctx, group)
	if err != nil {
		return err
	}
	interactive := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
	if length == 0 && !interactive {
		length = 30 * time.Second
	}
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	w.start(ctx)
	defer w.wait()
	s := &screen{group: group, work: w, began: time.Now()}
	if !interactive {
		return s.plain(ctx, length)
	}
	return s.live(ctx)
}
