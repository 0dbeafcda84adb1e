package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Disk is the disk of the log file; the server's disk reserve implements it.
type Disk interface {
	// HasSpace reports whether the disk has space for the log file.
	HasSpace() bool
}

// LogOptions configure the process's logger.
type LogOptions struct {
	Level  string    // debug, info, warn or error
	Format string    // text or json
	File   string    // "" for Stderr
	Stderr io.Writer // required without File
	// Disk is the disk of File; nil means that it always has space. Without space, lines are
	// written to Stderr.
	Disk Disk
}

// Log is the process's logger. Its level and file can change at run time.
type Log struct {
	*slog.Logger
	level slog.LevelVar
	file  *logFile // nil for Stderr
}

// OpenLog returns the logger and opens its file, if it has one.
func OpenLog(o LogOptions) (*Log, error) {
	l := &Log{}
	if err := l.SetLevel(o.Level); err != nil {
		return nil, err
	}
	w := o.Stderr
	if o.File != "" {
		l.file = &logFile{path: o.File, disk: o.Disk, fallback: o.Stderr}
		if err := l.file.reopen(); err != nil {
			return nil, fmt.Errorf("opening the log file: %w", err)
		}
		w = l.file
	}
	options := &slog.HandlerOptions{Level: &l.level}
	switch o.Format {
	case "text":
		l.Logger = slog.New(slog.NewTextHandler(w, options))
	case "json":
		l.Logger = slog.New(slog.NewJSONHandler(w, options))
	default:
		return nil, errors.Join(fmt.Errorf("log format %q is neither text nor json", o.Format), l.Close())
	}
	return l, nil
}

// SetLevel changes the lowest level that is logged.
func (l *Log) SetLevel(level string) error {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("log level %q: %w", level, err)
	}
	l.level.Set(threshold)
	return nil
}

// Reopen opens the file again after it was renamed, so that new lines go to a new file.
// If that fails, the logger keeps writing to the old file.
func (l *Log) Reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.reopen()
}

// Close closes the file. The logger must not be used afterwards.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.close()
}

// logFile is a log file that can be reopened.
type logFile struct {
	path     string
	disk     Disk      // nil: it always has space
	fallback io.Writer // for lines that the disk has no space for

	mu   sync.Mutex // protects file; held while a line is written and while the file is replaced
	file *os.File
}

func (f *logFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk != nil && !f.disk.HasSpace() && f.fallback != nil {
		return f.fallback.Write(p)
	}
	return f.file.Write(p)
}

func (f *logFile) reopen() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	f.file = file
	if old != nil {
		return old.Close()
	}
	return nil
}

func (f *logFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
