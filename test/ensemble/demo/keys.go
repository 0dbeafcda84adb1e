package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"freshet/test/ensemble/chaos"
)

// stopTimeout bounds the graceful shutdown of a member.
const stopTimeout = 30 * time.Second

// handleKey executes a key. Slow actions run in the background.
func (s *screen) handleKey(ctx context.Context, key byte) {
	if i := int(key) - 'a'; i >= 0 && i < len(s.ensemble.Members) {
		s.mu.Lock()
		s.chosen, s.message = i, ""
		s.mu.Unlock()
		return
	}
	s.mu.Lock()
	m := s.ensemble.Members[s.chosen]
	doing := s.busy[m.Name]
	s.mu.Unlock()
	state := s.processState(m)
	switch {
	case !strings.ContainsRune("ktpr", rune(key)):
		s.setMessage("unknown key %q", key)
	case doing != "":
		s.setMessage("%s %s; wait until it has finished", m.Name, doing)
	case state == gone && key != 'r':
		s.setMessage("%s is not running; r revives it", m.Name)
	case state == paused && key == 't':
		s.setMessage("%s is paused and receives no signal; p resumes it", m.Name)
	case state == runs && key == 'r':
		s.setMessage("%s is running", m.Name)
	case key == 'k':
		m.Kill()
		s.setMessage("%s was killed", m.Name)
	case key == 'p' && state == paused, key == 'r' && state == paused:
		s.report(m.Resume(), "%s is resumed", m.Name)
	case key == 'p':
		s.report(m.Pause(), "%s is paused; its lease expires after 5 s", m.Name)
	case key == 't':
		s.runInBackground(m, stops, "is stopping", "has stopped", func() error { return m.Stop(stopTimeout) })
	case key == 'r':
		s.runInBackground(m, starts, "is starting", "is ready again", func() error { return m.Start(ctx) })
	}
}

// runInBackground runs a slow action in the background.
func (s *screen) runInBackground(m *chaos.Member, doing, begun, done string, do func() error) {
	s.mu.Lock()
	s.busy[m.Name], s.message = doing, m.Name+" "+begun
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

// setMessage sets the last line of the screen; report sets it to the error if there is one.
func (s *screen) setMessage(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.message = fmt.Sprintf(format, args...)
}

func (s *screen) report(err error, format string, args ...any) {
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // the following lines are the log
		s.setMessage("%s", first)
		return
	}
	s.setMessage(format, args...)
}
