package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"freshet/internal/base/lograte"
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
	mode  atomic.Int32
	rate  atomic.Int64
	lines *lograte.Limiter // of successes and of failures
}

// NewAccessLog returns an AccessLog that logs to log, at most rate lines per second; 0
// means no limit.
func NewAccessLog(log *slog.Logger, mode AccessMode, rate int) *AccessLog {
	a := &AccessLog{Logger: log, lines: lograte.New(lograte.Policy{Interval: time.Second})}
	a.Configure(mode, rate)
	return a
}

// Configure changes the mode and the rate.
func (a *AccessLog) Configure(mode AccessMode, rate int) {
	a.mode.Store(int32(mode))
	a.rate.Store(int64(rate))
	a.lines.SetLines(rate)
}

// Enabled implements RequestLog.
func (a *AccessLog) Enabled(ctx context.Context, level slog.Level) bool {
	if !a.Logger.Enabled(ctx, level) {
		return false
	}
	if level != slog.LevelInfo {
		return true
	}
	kind, mode := "success", AccessMode(a.mode.Load())
	if RecordOf(ctx).Status >= http.StatusBadRequest {
		kind = "failure"
	} else if mode == AccessErrors {
		return false
	}
	if mode == AccessOff {
		return false
	}
	if a.rate.Load() == 0 {
		return true
	}
	ok, dropped := a.lines.Allow(kind)
	if dropped > 0 {
		a.LogAttrs(ctx, slog.LevelInfo,
			"requests were not logged because they exceeded log.accessRate; raise it to log more",
			slog.Int("requests", dropped), slog.Bool("failures", kind == "failure"))
	}
	return ok
}
