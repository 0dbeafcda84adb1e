package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// RequestLog logs requests, one line each. *slog.Logger logs all of them, AccessLog
// selects some. The context is the request's and returns its record.
type RequestLog interface {
	Enabled(ctx context.Context, level slog.Level) bool
	LogAttrs(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr)
}

// AccessMode selects the requests to log.
type AccessMode int32

// The modes.
const (
	AccessAll    AccessMode = iota
	AccessErrors            // requests with a status of 400 and above
	AccessOff
)

// AccessLog is a RequestLog that drops lines: those that the mode excludes, and those
// above a rate per second. So the log is complete under low load and stays small under
// high load. Successes and failures have separate rates, so that neither displaces the
// other. Errors of the server itself are always logged.
type AccessLog struct {
	*slog.Logger
	mode      atomic.Int32
	rate      atomic.Int64
	successes lineLimiter
	failures  lineLimiter
}

// NewAccessLog returns an AccessLog that logs to log, at most rate lines per second; 0
// means no limit.
func NewAccessLog(log *slog.Logger, mode AccessMode, rate int) *AccessLog {
	a := &AccessLog{Logger: log}
	a.Configure(mode, rate)
	return a
}

// Configure changes the mode and the rate.
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
	ok, dropped := lines.take(time.Now().Unix(), a.rate.Load())
	if dropped > 0 {
		a.LogAttrs(ctx, slog.LevelInfo,
			"requests were not logged because they exceeded log.accessRate; raise it to log more",
			slog.Int64("requests", dropped), slog.Bool("failures", lines == &a.failures))
	}
	return ok
}

// lineLimiter counts the lines of one second.
type lineLimiter struct {
	mu      sync.Mutex // protects the fields below
	second  int64
	lines   int64
	dropped int64
}

// take reports whether a line may be logged. On the first call of a new second it also
// returns how many lines were dropped before.
func (l *lineLimiter) take(second, limit int64) (ok bool, dropped int64) {
	if limit == 0 {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		dropped, l.second, l.lines, l.dropped = l.dropped, second, 0, 0
	}
	if l.lines >= limit {
		l.dropped++
		return false, dropped
	}
	l.lines++
	return true, dropped
}
