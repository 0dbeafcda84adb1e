package etcd

import (
	"fmt"
	"runtime"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lastWords receives the records that etcd logs before it would panic or exit the process, on any
// goroutine. The hook ends that goroutine instead and delivers the record as an error, because the
// member is unusable then.
type lastWords struct {
	once sync.Once
	said chan error // the first fatal record; closed afterwards
}

func newLastWords() *lastWords { return &lastWords{said: make(chan error, 1)} }

// guard returns a logger whose fatal and panic records are passed to OnWrite.
func (l *lastWords) guard(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WithFatalHook(l), zap.WithPanicHook(l))
}

// OnWrite implements zapcore.CheckWriteHook.
func (l *lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	text := entry.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Key == "error" {
			text += ": " + err.Error()
		}
	}
	l.say(fmt.Errorf("%s", text))
	runtime.Goexit()
}

func (l *lastWords) say(err error) {
	l.once.Do(func() {
		l.said <- err
		close(l.said)
	})
}

// start calls embed.StartEtcd and returns its panics as errors.
func (l *lastWords) start(cfg *embed.Config) (*embed.Etcd, error) {
	type result struct {
		member *embed.Etcd
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				l.say(fmt.Errorf("%v", r))
			}
		}()
		member, err := embed.StartEtcd(cfg)
		done <- result{member, err}
	}()
	select {
	case r := <-done:
		return r.member, r.err
	case err := <-l.said:
		return nil, err
	}
}
