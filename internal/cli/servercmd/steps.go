package servercmd

import (
	"fmt"
	"io"
	"os"
	"time"

	"freshet/internal/cli/output"
)

// stepPrinter prints a line for each step of a long operation, and a progress line on a
// terminal.
type stepPrinter struct {
	w        io.Writer
	progress *output.Progress
	step     string
	began    time.Time
}

func newSteps(w io.Writer) *stepPrinter {
	return &stepPrinter{w: w, progress: output.NewProgress(w, os.Getenv)}
}

// Step implements MigrateReport and backup.Steps.
func (p *stepPrinter) Step(text string) {
	p.progress.Clear()
	p.step, p.began = text, time.Now()
	_, _ = fmt.Fprintln(p.w, text)
}

// Progress implements MigrateReport and backup.Steps.
func (p *stepPrinter) Progress(done, total int64) {
	if total <= 0 || done <= 0 {
		return
	}
	left := time.Duration(float64(time.Since(p.began)) * float64(total-done) / float64(done))
	p.progress.Printf("%s: %s of %s, %d %%, %s left", p.step, formatBytes(done), formatBytes(total), done*100/total,
		left.Round(time.Second))
}
