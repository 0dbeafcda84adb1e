package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"

	"freshet/internal/base/lograte"
)

// BridgeKlog redirects the logs of the Kubernetes libraries and of their etcd client to
// log. It sets a global variable of klog without synchronization, so it must be called
// at the start of the process.
func BridgeKlog(log *slog.Logger) {
	klog.SetSlogLogger(slog.New(klogHandler{Library(log, "kubernetes").Handler()}))
	etcdClientLog.Store(Library(log, "etcd"))
}

// Library returns a logger for an embedded library. Records at level info are logged at
// debug, because they are details to Freshet's operator. Warnings and errors keep their
// level.
func Library(log *slog.Logger, name string) *slog.Logger {
	return slog.New(demotingHandler{log.Handler(), lograte.New(recurring)}).With(slog.String("library", name))
}

// harmless are warnings and errors of libraries that are irrelevant here and would
// alarm an operator without reason. They are logged at debug.
var harmless = map[string]bool{
	// etcd's own client tokens, which are not used: the embedded member listens
	// on a socket in a private directory.
	"simple token is not cryptographically signed":                                         true,
	"Running http and grpc server on single port. This is not recommended for production.": true,
	// On the very first start there is no storage version yet; etcd tries again.
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
	// The caller gets 401, and the audit trail has a record. At a higher level,
	// unauthenticated callers could fill the log.
	"Unable to authenticate the request": true,
	// A malformed selector or number; the caller gets 400.
	"Couldn't parse request": true,
	// The caller disconnected or its timeout expired; the log line of the request
	// reports that.
	"Timeout or abort while handling": true,
	"Post-timeout activity":           true,
}

// campaignDelayedSuffix is the end of a warning of an etcd member that starts on a slow
// machine; the member campaigns a moment later.
const campaignDelayedSuffix = "since there are still pending configuration changes to apply"

type demotingHandler struct {
	slog.Handler
	recurring *lograte.Limiter
}

func demote(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return min(level, slog.LevelDebug)
	}
	return level
}

func (d demotingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(level))
}

func (d demotingHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level == levelFatal {
		record.Level = slog.LevelError
		return d.Handler.Handle(ctx, record)
	}
	record.Level = demote(record.Level)
	if harmless[record.Message] || strings.HasSuffix(record.Message, campaignDelayedSuffix) || isDisconnect(&record) ||
		isInvalidObject(&record) || isIrrelevant(record.Message) {
		record.Level = slog.LevelDebug
	} else if key := recurringKey(&record); key != "" {
		record.Level = d.recurring.Level(key)
	}
	if record.Level == slog.LevelDebug {
		if !d.Handler.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return d.Handler.Handle(ctx, record)
}

// disconnectSuffixes are the ends of errors that report that a client disconnected or that a part of
// this process is being stopped.
var disconnectSuffixes = []string{
	net.ErrClosed.Error(), context.Canceled.Error(), io.ErrUnexpectedEOF.Error(),
	"http: Server closed", "mux: server closed", "http2: stream closed", "client disconnected",
	"http: Handler timeout", "broken pipe", "connection reset by peer",
}

// isDisconnect reports whether a record is about a closed connection. Libraries log that when
// a client disconnects and when they are stopped.
func isDisconnect(record *slog.Record) bool {
	disconnect := false
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "error" || attr.Key == "err" {
			text := attr.Value.String()
			disconnect = slices.ContainsFunc(disconnectSuffixes,
				func(end string) bool { return strings.HasSuffix(text, end) })
		}
		return !disconnect
	})
	return disconnect
}

// isInvalidObject reports whether a record is about an object of a caller with a value of the wrong type. The
// caller gets 422, and no object is stored.
func isInvalidObject(record *slog.Record) bool {
	if !strings.HasPrefix(record.Message, "[SHOULD NOT HAPPEN] failed to update managedFields") {
		return false
	}
	invalid := false
	record.Attrs(func(attr slog.Attr) bool {
		invalid = attr.Key == "err" && strings.HasPrefix(attr.Value.String(), "failed to convert new object")
		return !invalid
	})
	return invalid
}

func (d demotingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demotingHandler{d.Handler.WithAttrs(attrs), d.recurring}
}

func (d demotingHandler) WithGroup(name string) slog.Handler {
	return demotingHandler{d.Handler.WithGroup(name), d.recurring}
}

// ZapLogger returns a zap logger that writes to log. etcd supports only zap.
func ZapLogger(log *slog.Logger) *zap.Logger { return zap.New(zapCore{log.Handler()}) }

type zapCore struct{ handler slog.Handler }

func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level > zapcore.ErrorLevel:
		return levelFatal
	case level == zapcore.ErrorLevel:
		return slog.LevelError
	case level == zapcore.WarnLevel:
		return slog.LevelWarn
	case level == zapcore.InfoLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func (c zapCore) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(level))
}

func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	handler := c.handler
	for _, field := range fields {
		if isNamespace(field) {
			handler = handler.WithGroup(field.Key)
			continue
		}
		handler = handler.WithAttrs(attrs(field))
	}
	return zapCore{handler}
}

func (c zapCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c zapCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(entry.Time, slogLevel(entry.Level), entry.Message, 0)
	if slices.ContainsFunc(fields, isNamespace) {
		core, _ := c.With(fields).(zapCore) // With always returns a zapCore
		return core.handler.Handle(context.Background(), record)
	}
	for _, field := range fields {
		record.AddAttrs(attrs(field)...)
	}
	return c.handler.Handle(context.Background(), record)
}

// isNamespace reports whether a field opens a namespace for all fields that follow.
func isNamespace(field zapcore.Field) bool { return field.Type == zapcore.NamespaceType }

func (c zapCore) Sync() error { return nil }

func attrs(field zapcore.Field) []slog.Attr {
	encoder := zapcore.NewMapObjectEncoder()
	field.AddTo(encoder)
	list := make([]slog.Attr, 0, len(encoder.Fields))
	for key, value := range encoder.Fields {
		list = append(list, slog.Any(key, value))
	}
	return list
}
