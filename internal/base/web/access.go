package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// RequestLog takes the line of every request. *slog.Logger takes them all,
// AccessLog chooses. The context is the request's, and leads to its record.
type RequestLog interface {
	Enabled(ctx context.Context, level slog.Level) bool
	LogAttrs(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr)
}

// AccessMode says which requests leave a line.
type AccessMode int32

// The modes.
const (
	AccessAll    AccessMode = iota
	AccessErrors            // those with status 400 and up
	AccessOff
)

// AccessLog is a RequestLog that leaves lines out: those that nobody wants, and
// those past a number per second. So the log is complete while there is little
// to do, and small when there is much. Successes and failures are counted apart,
// so that neither crowds the other out. Failures of the server itself are always
// logged.
type AccessLog struct {
	*slog.Logger
	mode      atomic.Int32
	rate      atomic.Int64
	successes allowance
	failures  allowance
}

// NewAccessLog logs to log, at most rate lines per second; 0 is no limit.
func NewAccessLog(log *slog.Logger, mode AccessMode, rate int) *AccessLog {
	a := &AccessLog{Logger: log}
	a.Configure(mode, rate)
	return a
}

// Configure changes what is logged from now on.
func (a *AccessLog) Configure(mode AccessMode, rate int) {
	a.mode.Store(int32(mode))
	a.rate.Store(int64(rate))
}

// Enabled implements RequestLog.
func (a *AccessLog) Enabled(ctx context.Context, level slog.Level) bool {
	if !a.Logger.Enabled(ctx, level) {
		return false
	}
	if level != slog.LevelInfo {
		return true
	}
	lines, mode := &a.successes, AccessMode(a.mode.Load())
	if RecordOf(ctx).Status >= http.StatusBadRequest {
		lines = &a.failures
	} else if mode == AccessErrors {
		return false
	}
	if mode == AccessOff {
		return false
	}
	ok, leftOut := lines.take(time.Now().Unix(), a.rate.Load())
	if leftOut > 0 {
		a.LogAttrs(ctx, slog.LevelInfo,
			"requests were left out of the log because there were too many; raise log.accessRate to see more",
			slog.Int64("requests", leftOut), slog.Bool("failures", lines == &a.failures))
	}
	return ok
}

// allowance counts the lines of a second.
type allowance struct {
	mu      sync.Mutex
	second  int64
	lines   int64
	leftOut int64
}

// take asks for a line. In a new second it also returns how many were refused
// before.
func (l *allowance) take(second, most int64) (ok bool, leftOut int64) {
	if most == 0 {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		leftOut, l.second, l.lines, l.leftOut = l.leftOut, second, 0, 0
	}
	if l.lines >= most {
		l.leftOut++
		return false, leftOut
	}
	l.lines++
	return true, leftOut
}
