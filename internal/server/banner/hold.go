package banner

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"freshet/internal/config"
)

// LogWriter returns the writer of a log without a file. On a terminal, the log of the start
// comes after the banner: end, which may be called twice, writes it.
func LogWriter(cfg *config.Config, stderr *os.File) (w io.Writer, end func()) {
	descriptor := int(stderr.Fd()) //nolint:gosec // a file descriptor is small
	if cfg.Log.Format != "text" || cfg.LogPath() != "" || !term.IsTerminal(descriptor) {
		return stderr, func() {}
	}
	hold := NewHold(stderr)
	return hold, hold.End
}

// Hold delays log lines of the level INFO until the banner is printed, so that the banner is the
// first thing on a terminal. Other lines pass immediately.
type Hold struct {
	mu    sync.Mutex // protects the fields below; held while a line is written
	w     io.Writer
	lines bytes.Buffer
	ended bool
	timer *time.Timer
}

// maxHold is the longest delay. A start that takes longer shows its log.
const maxHold = 5 * time.Second

// NewHold returns a Hold that writes to w. The caller must call End.
func NewHold(w io.Writer) *Hold {
	h := &Hold{w: w}
	h.timer = time.AfterFunc(maxHold, h.End)
	return h
}

// Write implements io.Writer. Each call has one line.
func (h *Hold) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended && bytes.Contains(line, []byte(" level=INFO ")) {
		return h.lines.Write(line)
	}
	return h.w.Write(line)
}

// End writes the delayed lines. Later lines pass immediately.
func (h *Hold) End() {
	h.timer.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	_, _ = h.lines.WriteTo(h.w) // a failure to write the log cannot be reported
}
