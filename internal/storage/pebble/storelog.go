package pebble

import (
	"fmt"
	"log/slog"

	cdb "github.com/cockroachdb/pebble/v2"
)

// storeLogger is Pebble's logger. Its Fatalf must not end the process: it fails the store
// and returns, and the committer checks for a failure before it completes a batch.
type storeLogger struct{ s *store }

func (l storeLogger) Infof(format string, args ...any) {}

func (l storeLogger) Errorf(format string, args ...any) {
	l.s.log.Error("store: " + fmt.Sprintf(format, args...))
}

func (l storeLogger) Fatalf(format string, args ...any) {
	l.s.fail(fmt.Errorf("store: "+format, args...))
}

// events returns the listener for Pebble's events that an operator should see.
func (s *store) events() *cdb.EventListener {
	return &cdb.EventListener{
		BackgroundError: s.tables.failed,
		FlushEnd: func(info cdb.FlushInfo) {
			if info.Err == nil {
				s.tables.succeeded()
			}
		},
		CompactionEnd: func(info cdb.CompactionInfo) {
			if info.Err == nil {
				s.tables.succeeded()
			}
		},
		DataCorruption: s.corruptTable,
		WriteStallBegin: func(info cdb.WriteStallBeginInfo) {
			s.log.Warn("store: writes wait until flushes and compactions catch up",
				slog.String("detail", info.String()))
		},
	}
}
