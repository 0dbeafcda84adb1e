package output

import (
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Progress is a progress line that is rewritten on a terminal. It prints nothing elsewhere.
// It is not safe for concurrent use.
type Progress struct {
	w     io.Writer // nil if w is not a terminal
	width func() int
	next  time.Time // earliest time of the next update
	shown bool
}

// NewProgress returns a progress line on w. It prints nothing if w is not a terminal, or a
// terminal that cannot erase a line.
func NewProgress(w io.Writer, getenv func(string) string) *Progress {
	if !IsTerminal(w) || getenv("TERM") == "dumb" {
		return &Progress{}
	}
	return &Progress{w: w, width: func() int { return columns(w) }}
}

// columns returns the width of a terminal, 80 if it is unknown.
func columns(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		descriptor := int(file.Fd()) //nolint:gosec // a file descriptor is small
		if width, _, err := term.GetSize(descriptor); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// progressInterval is the minimum interval between two updates.
const progressInterval = 100 * time.Millisecond

// Printf replaces the line, at most once per interval. It truncates the line to the width of
// the terminal, because a wrapped line could not be erased.
func (p *Progress) Printf(format string, args ...any) {
	if p.w == nil || time.Now().Before(p.next) {
		return
	}
	p.next, p.shown = time.Now().Add(progressInterval), true
	_, _ = io.WriteString(p.w, "\r\x1b[K"+truncate(fmt.Sprintf(format, args...), p.width()-1))
}

// truncate truncates a line to n characters.
func truncate(line string, n int) string {
	if utf8.RuneCountInString(line) <= n {
		return line
	}
	return string([]rune(line)[:max(n, 0)])
}

// Clear erases the line. Call it before printing anything else.
func (p *Progress) Clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// Meter measures the current rate: that of the last one or two seconds, not the average
// since the start. It is not safe for concurrent use.
type Meter struct {
	begin time.Time
	count int
	// samples are the last two samples of the count, at least a second apart, older first.
	samples [2]sample
}

type sample struct {
	at    time.Time
	count int
}

// NewMeter starts a measurement.
func NewMeter() *Meter {
	now := sample{at: time.Now()}
	return &Meter{begin: now.at, samples: [2]sample{now, now}}
}

// Add adds n to the count.
func (m *Meter) Add(n int) { m.count += n }

// Count returns the count.
func (m *Meter) Count() int { return m.count }

// PerSecond returns the current rate.
func (m *Meter) PerSecond() float64 {
	now := time.Now()
	rate := float64(m.count-m.samples[0].count) / max(now.Sub(m.samples[0].at).Seconds(), 0.001)
	if now.Sub(m.samples[1].at) >= time.Second {
		m.samples = [2]sample{m.samples[1], {now, m.count}}
	}
	return rate
}

// Show prints count and rate as the progress line. It prints nothing in the first
// moments, so that short operations show no line.
func (m *Meter) Show(p *Progress, thing string) {
	if time.Since(m.begin) >= progressInterval {
		p.Printf("%s, %.0f/s", Number(m.count, thing), m.PerSecond())
	}
}

// Number formats a count with a noun, in the plural if necessary.
func Number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
