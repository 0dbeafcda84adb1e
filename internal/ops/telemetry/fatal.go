package telemetry

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
)

// levelFatal marks the last record of a library that is about to end the process. Such
// a record is always logged as an error, so that a process never ends silently.
const levelFatal = slog.LevelError + 4

// lastWords is the handler of klog's records. klog passes a fatal record to its logger at
// level info, which would be hidden. So every record of that level is checked; the
// libraries log few of them.
type lastWords struct{ slog.Handler }

func (l lastWords) Enabled(ctx context.Context, level slog.Level) bool {
	return level == slog.LevelInfo || l.Handler.Enabled(ctx, level)
}

func (l lastWords) Handle(ctx context.Context, record slog.Record) error {
	if record.Level == slog.LevelInfo {
		if calledFatal() {
			record.Level = levelFatal
		} else if !l.Handler.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return l.Handler.Handle(ctx, record)
}

func (l lastWords) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lastWords{l.Handler.WithAttrs(attrs)}
}

func (l lastWords) WithGroup(name string) slog.Handler {
	return lastWords{l.Handler.WithGroup(name)}
}

// calledFatal reports whether one of klog's Fatal or Exit functions is on the stack.
// Nothing else distinguishes their records from others.
func calledFatal() bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if name, ok := strings.CutPrefix(frame.Function, "k8s.io/klog/v2."); ok &&
			(strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Exit")) {
			return true
		}
		if !more {
			return false
		}
	}
}
