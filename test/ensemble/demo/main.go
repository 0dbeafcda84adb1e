// Command demo runs an ensemble of three members on loopback under load and shows it: the
// owners of the shards, the CPU and memory of each member, the clients' rates, and how all
// of that changes when a member is killed, paused, stopped and revived with single keys.
// It reads the ensemble's status from a running member. `make ensemble-demo` starts it;
// docs/howto/ensemble-faults.md describes it.
//
// Without a terminal it prints the table every few seconds, kills and revives a member
// once, and exits.
//
//   - main.go: start and end. work.go: the clients.
//   - observe.go: queries the members in the background, so that the screen never waits.
//   - screen.go, table.go: the drawing. keys.go: the keys.
//
// Locks: screen.mu protects the fields that keys and observe change, work.mu the sets of
// messages. screen.mu is taken before work.mu.
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

	"freshet/test/ensemble/chaos"
	"freshet/test/testserver"
)

func main() {
	length := flag.Duration("time", 0,
		"how long to run; the default 0 runs until q is pressed, or for 30 s without a terminal")
	flag.Parse()
	if err := demonstrate(*length); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// demonstrate runs the demo until it ends, is interrupted, or fails.
func demonstrate(length time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.MkdirTemp("", "freshet-demo-")
	if err != nil {
		return err
	}
	err = run(ctx, dir, length)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\nmembers' logs are in %s; delete the folder after reading them", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	fmt.Println("All members have exited; their data and logs are deleted.")
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
	ensemble, logs, err := startEnsemble(ctx, binary, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ensemble.Close()) }()
	fmt.Printf("Creating %d topics\n", topics)
	w, err := newWork(ctx, ensemble)
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
		ensemble: ensemble, work: w, logs: logs, began: time.Now(), busy: map[string]string{},
		latest: observed{shards: []string{"Querying the members…"}},
	}
	s.running.Go(func() { s.observe(ctx) })
	defer func() {
		cancel()
		fmt.Println("Stopping the members")
		s.running.Wait()
		w.wait()
	}()
	if !interactive {
		return s.plain(ctx, length)
	}
	return s.live(ctx)
}

// startEnsemble starts three members and prints its progress. Another program may take a port
// between the check that it is free and the start; then startEnsemble retries with new ports.
func startEnsemble(ctx context.Context, binary, dir string) (ensemble *chaos.Ensemble, logs string, err error) {
	for attempt := 1; ; attempt++ {
		below := filepath.Join(dir, fmt.Sprint(attempt))
		if err = os.Mkdir(below, 0o700); err != nil {
			return nil, "", err
		}
		ensemble, err = chaos.NewEnsemble(ctx, chaos.EnsembleOptions{Binary: binary, Dir: below}, 1)
		if err != nil {
			return nil, "", err
		}
		logs = filepath.Join(below, "*.log")
		fmt.Println("Starting three members on this machine; their logs are", logs)
		if err = startMembers(ctx, ensemble); err == nil {
			return ensemble, logs, nil
		}
		err = errors.Join(err, ensemble.Close())
		if attempt == 3 || !strings.Contains(err.Error(), "address already in use") {
			return nil, "", err
		}
		fmt.Println("Another program has taken one of the ports; retrying with others")
	}
}

func startMembers(ctx context.Context, ensemble *chaos.Ensemble) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var starting sync.WaitGroup
	failed := make([]error, len(ensemble.Members))
	for i, m := range ensemble.Members {
		starting.Go(func() {
			if failed[i] = m.Start(ctx); failed[i] != nil {
				cancel() // do not let the others wait for it
				return
			}
			fmt.Printf("Member %s is ready after %.1f s at %s\n", m.Name, time.Since(began).Seconds(), m.URL)
		})
	}
	starting.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return ensemble.Start(ctx) // waits until each of them serves messages
}
