package etcd

import (
	"fmt"
	"runtime"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lastWords catches what the library logs before it would panic or end the
// process, on whichever goroutine. That goroutine ends instead, and the member is
// lost: whoever waits for it is told why.
type lastWords struct {
	once sync.Once
	said chan error // closed behind the first word
}

func newLastWords() *lastWords { return &lastWords{said: make(chan error, 1)} }

// guard makes a logger whose fatal records end up here.
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

// start is embed.StartEtcd without its panics.
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
