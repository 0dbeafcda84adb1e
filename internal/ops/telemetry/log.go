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
)

// BridgeKlog sends the Kubernetes libraries' log to log, and that of their etcd
// client. It sets a global of klog that is not guarded, so it belongs at the very
// start of the process.
func BridgeKlog(log *slog.Logger) {
	klog.SetSlogLogger(slog.New(lastWords{Library(log, "kubernetes").Handler()}))
	etcdClientLog.Store(Library(log, "etcd"))
}

// Library returns a logger for a library embedded in the process. What the
// library calls information is detail to Freshet's operator, so it is shown at
// level debug; warnings and errors stay what they are.
func Library(log *slog.Logger, name string) *slog.Logger {
	return slog.New(demoting{log.Handler(), &patience{}}).With(slog.String("library", name))
}

// harmless are warnings and errors of libraries that mean nothing here, and
// that would frighten whoever starts a server for the first time.
var harmless = map[string]bool{
	// etcd's own client tokens, which are not used: the embedded member listens
	// on a socket in a private directory.
	"simple token is not cryptographically signed":                                         true,
	"Running http and grpc server on single port. This is not recommended for production.": true,
	// On the very first start there is no storage version yet; etcd tries again.
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
	// A caller's fault, answered with 401 and kept on the audit trail; at a
	// higher level, strangers could fill the log.
	"Unable to authenticate the request": true,
	// A malformed selector or number: the caller gets a 400.
	"Couldn't parse request": true,
	// The caller hung up, or its time ran out, which the line of the request
	// tells.
	"Timeout or abort while handling": true,
	"Post-timeout activity":           true,
}

// waitsToCampaign is said behind the id of an etcd member that is started on a slow
// machine; it campaigns a moment later.
const waitsToCampaign = "since there are still pending configuration changes to apply"

type demoting struct {
	slog.Handler
	patience *patience
}

func demote(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return min(level, slog.LevelDebug)
	}
	return level
}

func (d demoting) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(level))
}

func (d demoting) Handle(ctx context.Context, record slog.Record) error {
	if record.Level == levelFatal {
		record.Level = slog.LevelError
		return d.Handler.Handle(ctx, record)
	}
	record.Level = demote(record.Level)
	if harmless[record.Message] || strings.HasSuffix(record.Message, waitsToCampaign) || closing(&record) ||
		ordinary(record.Message) {
		record.Level = slog.LevelDebug
	} else if about := passing(&record); about != "" {
		record.Level = d.patience.level(about, record.Time)
	}
	if record.Level == slog.LevelDebug {
		if !d.Handler.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return d.Handler.Handle(ctx, record)
}

// gone are the ends of errors that tell of a client who hung up, or of a part of
// this process that is being stopped.
var gone = []string{
	net.ErrClosed.Error(), context.Canceled.Error(), io.ErrUnexpectedEOF.Error(),
	"http: Server closed", "mux: server closed", "http2: stream closed", "client disconnected",
	"http: Handler timeout", "broken pipe", "connection reset by peer",
}

// closing says whether a record complains that a connection was closed, which
// is how libraries take note of clients that hang up and of being stopped.
func closing(record *slog.Record) bool {
	found := false
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "error" || attr.Key == "err" {
			text := attr.Value.String()
			found = slices.ContainsFunc(gone, func(end string) bool { return strings.HasSuffix(text, end) })
		}
		return !found
	})
	return found
}

func (d demoting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoting{d.Handler.WithAttrs(attrs), d.patience}
}

func (d demoting) WithGroup(name string) slog.Handler {
	return demoting{d.Handler.WithGroup(name), d.patience}
}

// ZapLogger returns a zap logger that writes to log, for etcd, which speaks
// nothing else.
func ZapLogger(log *slog.Logger) *zap.Logger {
	return zap.New(zapCore{log.Handler()})
}

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
		core, _ := c.With(fields).(zapCore) // With returns nothing else
		return core.handler.Handle(context.Background(), record)
	}
	for _, field := range fields {
		record.AddAttrs(attrs(field)...)
	}
	return c.handler.Handle(context.Background(), record)
}

// isNamespace finds the field that opens a group for all that follow.
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
