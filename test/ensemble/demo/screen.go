package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"freshet/test/ensemble/chaos"
)

// screen shows the ensemble and handles keys. mu protects the fields below it.
type screen struct {
	ensemble *chaos.Ensemble
	work     *work
	logs     string // pattern of the members' log files
	began    time.Time
	running  sync.WaitGroup

	mu      sync.Mutex
	chosen  int
	message string            // result of the last key
	busy    map[string]string // action in progress, by member
	latest  observed
}

// live draws the table twice a second and handles keys until q is pressed.
func (s *screen) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := int(os.Stdin.Fd())
	cooked, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	defer func() { _ = term.Restore(in, cooked) }() // the terminal may be gone
	fmt.Print("\x1b[?1049h\x1b[?25l")               // alternate screen, no cursor
	defer fmt.Print("\x1b[?25h\x1b[?1049l")         // restore both
	keys := make(chan byte)
	go func() {
		for key := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(key); n == 0 || err != nil {
				cancel()
				return
			}
			select {
			case keys <- key[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		width, height, err := term.GetSize(int(os.Stdout.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			width, height = 80, 24
		}
		fmt.Print("\x1b[H" + strings.ReplaceAll(s.frame(width, height), "\n", "\x1b[K\r\n") + "\x1b[K\x1b[J")
		select {
		case key := <-keys:
			if key == 'q' || key == 3 { // 3 is Ctrl-C
				return nil
			}
			s.handleKey(ctx, key)
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

// plain prints the table every few seconds, and kills and revives a member in between.
func (s *screen) plain(ctx context.Context, length time.Duration) error {
	victim := s.ensemble.Members[len(s.ensemble.Members)-1]
	killAt, reviveAt := s.began.Add(length/4), s.began.Add(length/2)
	for pause(ctx, 3*time.Second) {
		switch now := time.Now(); {
		case now.After(reviveAt) && !victim.Running():
			fmt.Print("Reviving ", victim.Name, "\n\n")
			if err := victim.Start(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case now.After(killAt) && now.Before(reviveAt) && victim.Running():
			fmt.Print("kill -9 of ", victim.Name, "\n\n")
			victim.Kill()
		}
		fmt.Println(s.table(wide))
	}
	return nil
}
