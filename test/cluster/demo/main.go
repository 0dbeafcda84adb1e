// Command demo runs a group of three members on loopback under load and shows it: who owns
// what, what each member costs, what clients get, and what becomes of all that when a
// member is killed, paused, stopped and brought back, by single keys. What it shows
// comes from the members' own interfaces, asked at one that is there. `make
// cluster-demo` starts it; docs/howto/group-faults.md describes it.
//
// Without a terminal it prints the table every few seconds, kills and revives a
// member once, and ends.
//
//   - main.go: start and end. work.go: the clients.
//   - observe.go: asks the members beside the screen, which never waits for them.
//   - screen.go, table.go: what is drawn. keys.go: what keys do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"freshet/test/cluster/chaos"
	"freshet/test/testserver"
)

func main() {
	length := flag.Duration("time", 0, "how long it runs; until q is pressed when 0, half a minute without a terminal")
	flag.Parse()
	if err := demonstrate(*length); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// demonstrate runs it until it ends, is ended, or fails.
func demonstrate(length time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.MkdirTemp("", "freshet-demo-")
	if err != nil {
		return err
	}
	err = run(ctx, dir, length)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\nThe members' logs are in %s; delete it when you have read them", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	fmt.Println("All members are ended, and their data and logs are deleted.")
	return nil
}

func run(ctx context.Context, dir string, length time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getenv("FRESHET_BIN") == "" {
		fmt.Println("Building freshet; the first build takes a minute or two")
	}
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		return err
	}
	group, logs, err := startGroup(ctx, binary, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	fmt.Printf("Making %d topics\n", topics)
	w, err := newWork(ctx, group)
	if err != nil {
		return err
	}
	interactive := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) &&
		os.Getenv("TERM") != "dumb"
	if length == 0 && !interactive {
		length = 30 * time.Second
	}
	if length > 0 {
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	w.start(ctx)
	s := &screen{
		group: group, work: w, logs: logs, began: time.Now(), busy: map[string]string{},
		seen: observed{shards: []string{"Asking the members…"}},
	}
	s.running.Go(func() { s.observe(ctx) })
	defer func() {
		cancel()
		fmt.Println("Ending the members")
		s.running.Wait()
		w.wait()
	}()
	if !interactive {
		return s.plain(ctx, length)
	}
	return s.live(ctx)
}

// startGroup starts three members and says how far it is. Between the moment in which
// ports are found free and the start another program may have taken one; then others
// are looked for.
func startGroup(ctx context.Context, binary, dir string) (group *chaos.Group, logs string, err error) {
	for attempt := 1; ; attempt++ {
		below := filepath.Join(dir, fmt.Sprint(attempt))
		if err = os.Mkdir(below, 0o700); err != nil {
			return nil, "", err
		}
		group, err = chaos.NewGroup(ctx, chaos.GroupOptions{Binary: binary, Dir: below}, 1)
		if err != nil {
			return nil, "", err
		}
		logs = filepath.Join(below, "*.log")
		fmt.Println("Starting three members on this machine; their logs are", logs)
		if err = startMembers(ctx, group); err == nil {
			return group, logs, nil
		}
		err = errors.Join(err, group.Close())
		if attempt == 3 || !strings.Contains(err.Error(), "address already in use") {
			return nil, "", err
		}
		fmt.Println("Another program has just taken one of their ports; starting again with others")
	}
}

func startMembers(ctx context.Context, group *chaos.Group) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var starting sync.WaitGroup
	failed := make([]error, len(group.Members))
	for i, m := range group.Members {
		starting.Go(func() {
			if failed[i] = m.Start(ctx); failed[i] != nil {
				cancel() // the others wait for it in vain
				return
			}
			fmt.Printf("Member %s is ready after %.1f s at %s\n", m.Name, time.Since(began).Seconds(), m.URL)
		})
	}
	starting.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return group.Start(ctx) // waits until each of them serves messages
}
