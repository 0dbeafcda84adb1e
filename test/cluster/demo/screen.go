package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"freshet/bench/process"
	"freshet/test/cluster/chaos"
)

// screen shows the group and takes keys.
type screen struct {
	group  *chaos.Group
	work   *work
	began  time.Time
	chosen int
	said   string // what the last key did

	last   time.Time // of the figures below
	before figures
}

// figures are counters, of which the table shows rates.
type figures struct {
	produced, consumed, failed int64
	cpu                        map[string]time.Duration
}

// live draws the table every half second and obeys keys until q is pressed.
func (s *screen) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := int(os.Stdin.Fd())
	cooked, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("reading single keys: %w", err)
	}
	defer func() { _ = term.Restore(in, cooked) }() // the terminal may be gone
	fmt.Print("\x1b[?1049h\x1b[?25l")               // another page, no cursor
	defer fmt.Print("\x1b[?25h\x1b[?1049l")         // as it was
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
		text := strings.ReplaceAll(s.table(ctx)+"\n"+s.help(), "\n", "\x1b[K\r\n")
		fmt.Print("\x1b[H" + text + "\x1b[J")
		select {
		case key := <-keys:
			if key == 'q' || key == 3 { // 3 is Ctrl-C
				return nil
			}
			s.obey(ctx, key)
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *screen) help() string {
	return fmt.Sprintf("a b c: choose (now %s)   k: kill -9   t: SIGTERM   p: pause, or go on   r: revive   q: quit\n%s\n",
		s.group.Members[s.chosen].Name, s.said)
}

// obey does what a key says. What takes time is done beside.
func (s *screen) obey(ctx context.Context, key byte) {
	if i := int(key) - 'a'; i >= 0 && i < len(s.group.Members) {
		s.chosen = i
		return
	}
	m := s.group.Members[s.chosen]
	switch key {
	case 'k':
		m.Kill()
		s.said = m.Name + " was killed"
	case 't':
		s.said = m.Name + " was told to stop"
		go func() { _ = m.Stop(30 * time.Second) }() // the table shows what became of it
	case 'p':
		if m.Paused() {
			_ = m.Resume() // it may be gone
			s.said = m.Name + " goes on"
		} else {
			_ = m.Pause() // it may be gone
			s.said = m.Name + " is paused; its lease ends after 5 s"
		}
	case 'r':
		s.said = m.Name + " was started"
		_ = m.Resume()                   // if it was paused
		go func() { _ = m.Start(ctx) }() // the table shows what became of it
	}
}

// plain prints the table now and then, and kills and revives a member in between.
func (s *screen) plain(ctx context.Context, length time.Duration) error {
	victim := s.group.Members[len(s.group.Members)-1]
	killAt, reviveAt := s.began.Add(length/4), s.began.Add(length/2)
	for pause(ctx, 3*time.Second) {
		switch now := time.Now(); {
		case now.After(reviveAt) && !victim.Running():
			fmt.Println("reviving", victim.Name)
			if err := victim.Start(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case now.After(killAt) && now.Before(reviveAt) && victim.Running():
			fmt.Println("kill -9 of", victim.Name)
			victim.Kill()
		}
		fmt.Println(s.table(ctx))
	}
	return nil
}

// table is the group as it is now.
func (s *screen) table(ctx context.Context) string {
	now := time.Now()
	passed := now.Sub(s.last).Seconds()
	figures := figures{s.work.produced.Load(), s.work.consumed.Load(), s.work.failed.Load(), map[string]time.Duration{}}
	var b strings.Builder
	fmt.Fprintf(&b, "Freshet, %d members, %s\n\n", len(s.group.Members), now.Sub(s.began).Round(time.Second))
	view := s.look(ctx)
	fmt.Fprintf(&b, "%-8s%-10s%-18s%-8s%-8s%-10s%-24s%s\n", "MEMBER", "PROCESS", "HEALTH", "SHARDS", "CPU", "MEMORY", "LEADS", "ADDRESS")
	for _, m := range s.group.Members {
		state, cpu, memory := "gone", "", ""
		if pid := m.PID(); pid > 0 {
			state = "runs"
			if m.Paused() {
				state = "paused"
			}
			if used, err := process.CPU(pid); err == nil {
				figures.cpu[m.Name] = used
				if old, ok := s.before.cpu[m.Name]; ok && used >= old {
					cpu = fmt.Sprintf("%.0f%%", 100*(used-old).Seconds()/passed)
				}
			}
			if bytes, err := process.Resident(pid); err == nil {
				memory = fmt.Sprintf("%d MB", bytes>>20)
			}
		}
		fmt.Fprintf(&b, "%-8s%-10s%-18s%-8d%-8s%-10s%-24s%s\n", m.Name, state, view.health[m.Name], view.owned[m.Name], cpu, memory, view.does[m.Name], m.URL)
	}
	b.WriteString("\n" + view.shards + "\n")
	rate := func(now, before int64) float64 { return float64(now-before) / passed }
	fmt.Fprintf(&b, "produced %.0f/s   consumed %.0f/s   failed calls %.0f/s   acknowledged and not consumed yet %d   consumed again %d\n",
		rate(figures.produced, s.before.produced), rate(figures.consumed, s.before.consumed), rate(figures.failed, s.before.failed),
		s.work.backlog(), s.work.again.Load())
	s.last, s.before = now, figures
	return b.String()
}
