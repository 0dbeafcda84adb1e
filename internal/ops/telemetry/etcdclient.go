package telemetry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.uber.org/zap"
)

// The Kubernetes libraries create the logger of their etcd client during initialization,
// from a configuration of etcd that writes JSON to standard error. So this package
// changes the configuration first: Go initializes it before k8s.io/apiserver, by the
// order of import paths. A test of the real binary detects if that order changes.
var _ = divertEtcdClient()

// etcdClientLog is the logger of the etcd client; nil discards its records. It is global
// to the process, like klog's.
var etcdClientLog atomic.Pointer[slog.Logger]

func divertEtcdClient() error {
	const scheme = "freshet-log"
	err := zap.RegisterSink(scheme, func(*url.URL) (zap.Sink, error) { return etcdClientSink{}, nil })
	if err == nil {
		logutil.DefaultZapLoggerConfig.OutputPaths = []string{scheme + ":"}
		logutil.DefaultZapLoggerConfig.ErrorOutputPaths = []string{scheme + ":"}
	}
	return err
}

// etcdClientSink parses lines of JSON and logs them as records.
type etcdClientSink struct{}

// Write implements zap.Sink.
func (etcdClientSink) Write(line []byte) (int, error) {
	log := etcdClientLog.Load()
	if log == nil {
		return len(line), nil
	}
	fields := map[string]any{}
	if json.Unmarshal(line, &fields) != nil {
		fields["msg"] = strings.TrimSpace(string(line))
	}
	var level slog.Level
	text, _ := fields["level"].(string)
	if level.UnmarshalText([]byte(text)) != nil {
		level = slog.LevelWarn
	}
	message, _ := fields["msg"].(string)
	var attrs []any
	for _, key := range []string{"method", "error"} {
		if value, ok := fields[key]; ok {
			attrs = append(attrs, slog.Any(key, value))
		}
	}
	log.Log(context.Background(), level, message, attrs...)
	return len(line), nil
}

// Sync implements zap.Sink.
func (etcdClientSink) Sync() error { return nil }

// Close implements zap.Sink.
func (etcdClientSink) Close() error { return nil }
