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

// The Kubernetes libraries make the logger of their etcd client when they are
// initialized, from a configuration of etcd that writes JSON to standard error,
// whatever the process logs elsewhere. So the configuration is changed here
// first: Go initializes this package before k8s.io/apiserver, by the order of
// import paths, and the test of the real binary shows when that is no longer so.
var _ = divertEtcdClient()

// etcdClientLog is where its lines go, nil for nowhere. As with klog there is one
// for the process.
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

// etcdClientSink takes lines of JSON and makes records of them.
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
