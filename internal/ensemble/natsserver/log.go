package natsserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
)

// logAdapter writes the server's log to slog. The server's notices are logged at debug, because
// Freshet logs its own lines about start, listeners and shutdown.
type logAdapter struct {
	log    *slog.Logger
	fatal  chan error // the first error that would exit a stand-alone server
	failed atomic.Bool

	corrupt func(problem string) // gets messages about damaged files; nil ignores them
}

var _ server.Logger = (*logAdapter)(nil)

func newLogAdapter(log *slog.Logger) *logAdapter {
	return &logAdapter{
		log:   cmp.Or(log, slog.Default()).With(slog.String("component", "nats")),
		fatal: make(chan error, 1),
	}
}

// corruptMessages are parts of the server's messages about files that it cannot use.
var corruptMessages = []string{
	"Snapshot corrupt", "Corrupt WAL", "raft: corrupt peer", "Commit file corrupt", "malformed or corrupt message",
}

// check reports a message about a damaged file.
func (b *logAdapter) check(format string, args []any) {
	if b.corrupt == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if slices.ContainsFunc(corruptMessages, func(part string) bool { return strings.Contains(text, part) }) {
		b.corrupt(text)
	}
}

func (b *logAdapter) logf(level slog.Level, format string, args []any) {
	ctx := context.Background()
	if b.log.Enabled(ctx, level) {
		b.log.LogAttrs(ctx, level, fmt.Sprintf(format, args...))
	}
}

// Noticef implements server.Logger.
func (b *logAdapter) Noticef(format string, args ...any) { b.logf(slog.LevelDebug, format, args) }

// Warnf implements server.Logger.
func (b *logAdapter) Warnf(format string, args ...any) {
	b.check(format, args)
	b.logf(slog.LevelWarn, format, args)
}

// Errorf implements server.Logger.
func (b *logAdapter) Errorf(format string, args ...any) {
	b.check(format, args)
	b.logf(slog.LevelError, format, args)
}

// Debugf implements server.Logger.
func (b *logAdapter) Debugf(format string, args ...any) { b.logf(slog.LevelDebug, format, args) }

// Tracef implements server.Logger.
func (b *logAdapter) Tracef(format string, args ...any) { b.logf(slog.LevelDebug, format, args) }

// Fatalf implements server.Logger. It does not exit the process: Start returns the error.
func (b *logAdapter) Fatalf(format string, args ...any) {
	b.logf(slog.LevelError, format, args)
	b.failed.Store(true)
	select {
	case b.fatal <- fmt.Errorf(format, args...):
	default:
	}
}
