package output

import (
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Progress is one line that says how it goes, written again and again on a
// terminal and not at all elsewhere. It is for one goroutine.
type Progress struct {
	w     io.Writer // nil when nobody looks on
	width func() int
	next  time.Time // when the line may be written again
	shown bool
}

// NewProgress makes a line on w, unless that is no terminal or one that cannot erase a
// line.
func NewProgress(w io.Writer, getenv func(string) string) *Progress {
	if !IsTerminal(w) || getenv("TERM") == "dumb" {
		return &Progress{}
	}
	return &Progress{w: w, width: func() int { return columns(w) }}
}

// columns is how wide a terminal is; 80 when it does not say.
func columns(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 { //nolint:gosec // a file descriptor is small
			return width
		}
	}
	return 80
}

// progressEvery keeps a terminal readable.
const progressEvery = 100 * time.Millisecond

// Printf replaces the line, unless that was done a moment ago. What does not fit is
// cut off: a line that wraps could not be erased.
func (p *Progress) Printf(format string, args ...any) {
	if p.w == nil || time.Now().Before(p.next) {
		return
	}
	p.next, p.shown = time.Now().Add(progressEvery), true
	_, _ = io.WriteString(p.w, "\r\x1b[K"+cut(fmt.Sprintf(format, args...), p.width()-1)) // only a decoration
}

// cut is the beginning of a line, at most n characters.
func cut(line string, n int) string {
	if utf8.RuneCountInString(line) <= n {
		return line
	}
	return string([]rune(line)[:max(n, 0)])
}

// Clear removes the line; do so before anything else is printed.
func (p *Progress) Clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // only a decoration
		p.shown = false
	}
}

// Meter says how fast something goes now: in the last second or two, and not since it
// began. It is for one goroutine.
type Meter struct {
	begin time.Time
	count int
	// What was counted when the rate was last taken, and before that.
	marks [2]mark
}

type mark struct {
	at    time.Time
	count int
}

// NewMeter begins to count.
func NewMeter() *Meter {
	now := mark{at: time.Now()}
	return &Meter{begin: now.at, marks: [2]mark{now, now}}
}

// Add counts.
func (m *Meter) Add(n int) { m.count += n }

// Count is what was counted.
func (m *Meter) Count() int { return m.count }

// PerSecond is the rate.
func (m *Meter) PerSecond() float64 {
	now := time.Now()
	rate := float64(m.count-m.marks[0].count) / max(now.Sub(m.marks[0].at).Seconds(), 0.001)
	if now.Sub(m.marks[1].at) >= time.Second {
		m.marks = [2]mark{m.marks[1], {now, m.count}}
	}
	return rate
}

// Show writes number and rate as the line of progress; not of what is over at once.
func (m *Meter) Show(p *Progress, thing string) {
	if time.Since(m.begin) >= progressEvery {
		p.Printf("%s, %.0f/s", Number(m.count, thing), m.PerSecond())
	}
}

// Number is a number of things, in words.
func Number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
