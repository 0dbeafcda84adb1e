package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
)

// Defaults of Options.
const (
	DefaultMaxBytes  = 64 << 20
	DefaultKeep      = 10
	DefaultQueue     = 4096
	DefaultSyncEvery = time.Second
	DefaultPatience  = 20 * time.Millisecond
)

// ErrClosed is what a closed log answers.
var ErrClosed = errs.New(errs.Unavailable, "the audit log is closed")

// Options say where the log is and how large it may grow; zero values are the
// defaults.
type Options struct {
	Path      string        // required
	MaxBytes  int64         // of one file, before it is rotated
	Keep      int           // rotated files kept
	Queue     int           // records that may wait for the writer
	SyncEvery time.Duration // between syncs of new records; negative for none
	Patience  time.Duration // that a caller waits for a place in a full queue
	Log       *slog.Logger  // for failures of the log itself
	// Room says whether the disk has room for records; without, they are counted as
	// failed. nil is always.
	Room func() bool
}

func (o *Options) complete() error {
	if o.Path == "" {
		return fmt.Errorf("audit: a path is required")
	}
	set := func(v *int, to int) {
		if *v <= 0 {
			*v = to
		}
	}
	set(&o.Keep, DefaultKeep)
	set(&o.Queue, DefaultQueue)
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = DefaultSyncEvery
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Stats count what became of records, for metrics.
type Stats struct {
	Written int64 // lines in the file
	Dropped int64 // not written because the queue was full
	Failed  int64 // not written because the file failed
	Queued  int   // waiting now

	Suppressed int64 // denials of which only the number was written
}

// Log is an audit log.
type Log struct {
	opts    Options
	queue   chan Record
	flush   chan chan error
	reopen  chan chan error
	file    *rotated
	reading chan struct{} // bounds concurrent readers
	full    atomic.Bool   // set by a drop, unset when the writer has caught up
	written atomic.Int64
	dropped atomic.Int64
	failing atomic.Bool // the last write failed, which was reported
	failed  atomic.Int64

	closing sync.Once
	closed  chan struct{} // asks the writer to end
	done    chan struct{} // the writer has ended
	result  error         // of the last flush; after done
}

// Open opens or creates the log.
func Open(opts Options) (*Log, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	l := &Log{
		opts:    opts,
		queue:   make(chan Record, opts.Queue),
		flush:   make(chan chan error),
		reopen:  make(chan chan error),
		reading: make(chan struct{}, 2),
		closed:  make(chan struct{}),
		done:    make(chan struct{}),
	}
	var err error
	if l.file, err = openRotated(opts.Path, opts.MaxBytes, opts.Keep, l.report); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	go l.write()
	return l, nil
}

// Record takes a record. It returns quickly whatever the disk does.
func (l *Log) Record(r Record) {
	select {
	case <-l.closed:
		l.dropped.Add(1)
		return
	default:
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	select {
	case l.queue <- r:
		return
	default:
	}
	if !l.full.Load() {
		patience := time.NewTimer(l.opts.Patience)
		defer patience.Stop()
		select {
		case l.queue <- r:
			return
		case <-patience.C:
		case <-l.closed:
		}
		l.full.Store(true)
	}
	l.dropped.Add(1)
}

// Flush waits until everything recorded before is in the file and synced.
func (l *Log) Flush(ctx context.Context) error { return l.ask(ctx, l.flush) }

// Reopen goes on in a new file when somebody has moved the old one away, after
// writing what was recorded before to the old one. When the new file cannot be
// opened the old one stays in use.
func (l *Log) Reopen(ctx context.Context) error { return l.ask(ctx, l.reopen) }

// ask has the writer do something and waits for it.
func (l *Log) ask(ctx context.Context, what chan<- chan error) error {
	reply := make(chan error, 1)
	select {
	case what <- reply:
	case <-l.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close writes what is queued, syncs and closes the file.
func (l *Log) Close() error {
	l.closing.Do(func() { close(l.closed) })
	<-l.done
	return l.result
}

// Stats counts what became of records so far.
func (l *Log) Stats() Stats {
	return Stats{Written: l.written.Load(), Dropped: l.dropped.Load(), Failed: l.failed.Load(), Queued: len(l.queue)}
}

// write is the one writer. It gathers what is queued into one write to the
// file, and syncs on a timer that runs only while there is something to sync.
func (l *Log) write() {
	defer close(l.done)
	var due <-chan time.Time
	for {
		select {
		case r := <-l.queue:
			l.writeQueued(&r)
			if due == nil && l.opts.SyncEvery > 0 {
				due = time.After(l.opts.SyncEvery)
			}
		case <-due:
			due = nil
			l.report(l.file.sync())
		case reply := <-l.flush:
			l.writeQueued(nil)
			err := l.file.sync()
			l.report(err)
			reply <- err
		case reply := <-l.reopen:
			l.writeQueued(nil)
			reply <- l.file.reopen()
		case <-l.closed:
			l.writeQueued(nil)
			l.result = l.file.close()
			return
		}
	}
}

// writeQueued writes first, if any, and whatever else is waiting.
func (l *Log) writeQueued(first *Record) {
	n := int64(0)
	add := func(r Record) {
		l.file.append(r.clean())
		n++
	}
	if first != nil {
		add(*first)
	}
	for range cap(l.queue) {
		select {
		case r := <-l.queue:
			add(r)
			continue
		default:
		}
		break
	}
	if l.full.Swap(false) {
		// The gap is part of the record.
		add(Record{Surface: "audit", Verb: "drop", Resource: "auditrecords", Decision: Denied, Count: l.dropped.Load()})
	}
	if n == 0 {
		return
	}
	if err := l.writeFile(); err != nil {
		l.failed.Add(n)
		if !l.failing.Swap(true) {
			l.report(err)
		}
		return
	}
	l.failing.Store(false)
	l.written.Add(n)
}

var errNoRoom = errors.New("the disk is nearly full; records are counted and not written until there is room")

func (l *Log) writeFile() error {
	if l.opts.Room != nil && !l.opts.Room() {
		l.file.pending.Reset()
		return errNoRoom
	}
	return l.file.write()
}

func (l *Log) report(err error) {
	if err != nil {
		l.opts.Log.LogAttrs(context.Background(), slog.LevelError,
			"the audit log could not be written; records may be missing", slog.String("error", err.Error()))
	}
}
