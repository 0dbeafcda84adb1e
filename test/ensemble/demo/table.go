package main

import (
	"fmt"
	"strings"
	"time"
)

// wide is the width from which addresses are shown.
const wide = 110

// keysHelp explains every key.
var keysHelp = []string{
	"Keys: a b c choose a member (>)", "k kill -9", "t stop", "p pause, resume",
	"r revive", "q quit",
}

// help returns the keys in as many lines as the width requires.
func help(width int) (lines []string) {
	line := keysHelp[0]
	for _, key := range keysHelp[1:] {
		if longer := line + "   " + key; width <= 0 || len(longer) <= width {
			line = longer
			continue
		}
		lines, line = append(lines, line), "      "+key
	}
	return append(lines, line)
}

// frame returns a complete screen for the given size, without a final newline. If the rows
// do not fit, it omits the last rows of the table and keeps the help and the result of the
// last key; height 0 means unlimited.
func (s *screen) frame(width, height int) string {
	lines := strings.Split(s.table(width), "\n")
	s.mu.Lock()
	foot := append(help(width), s.message)
	s.mu.Unlock()
	if rows := height - len(foot); height > 0 && len(lines) > rows {
		lines = lines[:max(0, rows)]
	}
	lines = append(lines, foot...)
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return strings.Join(lines, "\n")
}

// cut shortens a line to the width.
func cut(line string, width int) string {
	if runes := []rune(line); width > 0 && len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}

// table returns the ensemble as last observed, with the current states of the processes.
func (s *screen) table(width int) string {
	state := map[string]string{}
	for _, m := range s.ensemble.Members {
		state[m.Name] = s.processState(m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "Freshet: %d members, %d topics, %s. Logs: %s\n\n",
		len(s.ensemble.Members), topics, time.Since(s.began).Round(time.Second), s.logs)
	line := func(chosen string, r row) {
		text := fmt.Sprintf("%-2s%-7s%-9s%-15s%-8s%-6s%-9s", chosen, r.name, r.process, r.health, r.owned,
			r.cpu, r.memory)
		if width >= wide {
			text += fmt.Sprintf("%-25s%s", r.leads, r.address)
		} else {
			text += r.leads
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("", row{"MEMBER", "PROCESS", "HEALTH", "SHARDS", "CPU", "MEMORY", "LEADS", "ADDRESS"})
	for i, r := range s.latest.members {
		cursor := ""
		if i == s.chosen {
			cursor = ">"
		}
		r.process = state[r.name]
		line(cursor, r)
	}
	b.WriteString("\n" + strings.Join(s.latest.shards, "\n") + "\n\n")
	fmt.Fprintf(&b, "Clients: produced %.0f/s, consumed %.0f/s, failed calls %.0f/s\n", s.latest.produced,
		s.latest.consumed, s.latest.failed)
	fmt.Fprintf(&b, "         acknowledged and not yet consumed %d, redelivered %d, foreign %d\n",
		s.work.backlog(), s.work.redelivered.Load(), s.work.foreign.Load())
	return b.String()
}
