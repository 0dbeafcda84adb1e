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

// klogHandler is the handler of klog's records. klog passes a fatal record to its logger at
// level info, which would be hidden. So every record of that level is checked; the
// libraries log few of them.
type klogHandler struct{ slog.Handler }

func (l klogHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level == slog.LevelInfo || l.Handler.Enabled(ctx, level)
}

func (l klogHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level == slog.LevelInfo {
		if isFatalCall() {
			record.Level = levelFatal
		} else if !l.Handler.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return l.Handler.Handle(ctx, record)
}

func (l klogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return klogHandler{l.Handler.WithAttrs(attrs)}
}

func (l klogHandler) WithGroup(name string) slog.Handler {
	return klogHandler{l.Handler.WithGroup(name)}
}

// isFatalCall reports whether one of klog's Fatal or Exit functions is on the stack.
// Nothing else distinguishes their records from others.
func isFatalCall() bool {
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
