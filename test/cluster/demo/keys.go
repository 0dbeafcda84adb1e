package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"freshet/test/cluster/chaos"
)

// stopPatience bounds the graceful shutdown of a member.
const stopPatience = 30 * time.Second

// obey executes a key. Slow actions run in the background.
func (s *screen) obey(ctx context.Context, key byte) {
	if i := int(key) - 'a'; i >= 0 && i < len(s.group.Members) {
		s.mu.Lock()
		s.chosen, s.said = i, ""
		s.mu.Unlock()
		return
	}
	s.mu.Lock()
	m := s.group.Members[s.chosen]
	doing := s.busy[m.Name]
	s.mu.Unlock()
	state := s.process(m)
	switch {
	case !strings.ContainsRune("ktpr", rune(key)):
		s.say("unknown key %q", key)
	case doing != "":
		s.say("%s %s; wait until it has finished", m.Name, doing)
	case state == gone && key != 'r':
		s.say("%s is not running; r revives it", m.Name)
	case state == paused && key == 't':
		s.say("%s is paused and receives no signal; p resumes it", m.Name)
	case state == runs && key == 'r':
		s.say("%s is running", m.Name)
	case key == 'k':
		m.Kill()
		s.say("%s was killed", m.Name)
	case key == 'p' && state == paused, key == 'r' && state == paused:
		s.report(m.Resume(), "%s is resumed", m.Name)
	case key == 'p':
		s.report(m.Pause(), "%s is paused; its lease expires after 5 s", m.Name)
	case key == 't':
		s.beside(m, stops, "is stopping", "has stopped", func() error { return m.Stop(stopPatience) })
	case key == 'r':
		s.beside(m, starts, "is starting", "is ready again", func() error { return m.Start(ctx) })
	}
}

// beside runs a slow action in the background.
func (s *screen) beside(m *chaos.Member, doing, begun, done string, do func() error) {
	s.mu.Lock()
	s.busy[m.Name], s.said = doing, m.Name+" "+begun
	s.mu.Unlock()
	s.running.Go(func() {
		began := time.Now()
		err := do()
		s.mu.Lock()
		delete(s.busy, m.Name)
		s.mu.Unlock()
		s.report(err, "%s %s, after %.1f s", m.Name, done, time.Since(began).Seconds())
	})
}

// say sets the last line of the screen; report sets it to the error if there is one.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = fmt.Sprintf(format, args...)
}

func (s *screen) report(err error, format string, args ...any) {
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // the following lines are the log
		s.say("%s", first)
		return
	}
	s.say(format, args...)
}
