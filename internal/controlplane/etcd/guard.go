package etcd

import (
	"fmt"
	"runtime"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// crashGuard receives the records that etcd logs before it would panic or exit the process, on any
// goroutine. The hook ends that goroutine instead and delivers the record as an error, because the
// member is unusable then.
type crashGuard struct {
	once    sync.Once
	crashed chan error // the first fatal record; closed afterwards
}

func newCrashGuard() *crashGuard { return &crashGuard{crashed: make(chan error, 1)} }

// hook returns a logger whose fatal and panic records are passed to OnWrite.
func (l *crashGuard) hook(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WithFatalHook(l), zap.WithPanicHook(l))
}

// OnWrite implements zapcore.CheckWriteHook.
func (l *crashGuard) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	text := entry.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Key == "error" {
			text += ": " + err.Error()
		}
	}
	l.report(fmt.Errorf("%s", text))
	runtime.Goexit()
}

func (l *crashGuard) report(err error) {
	l.once.Do(func() {
		l.crashed <- err
		close(l.crashed)
	})
}

// start calls embed.StartEtcd and returns its panics as errors.
func (l *crashGuard) start(cfg *embed.Config) (*embed.Etcd, error) {
	type result struct {
		member *embed.Etcd
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				l.report(fmt.Errorf("%v", r))
			}
		}()
		member, err := embed.StartEtcd(cfg)
		done <- result{member, err}
	}()
	select {
	case r := <-done:
		return r.member, r.err
	case err := <-l.crashed:
		return nil, err
	}
}
