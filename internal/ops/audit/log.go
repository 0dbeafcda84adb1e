package audit

import (
	"cmp"
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
	DefaultMaxBytes     = 64 << 20
	DefaultMaxRotated   = 10
	DefaultQueue        = 4096
	DefaultSyncEvery    = time.Second
	DefaultQueueTimeout = 20 * time.Millisecond
)

// ErrClosed is the error of calls on a closed log.
var ErrClosed = errs.New(errs.Unavailable, "audit log is closed")

// Disk is the disk of the log; the server's disk reserve implements it.
type Disk interface {
	// HasSpace reports whether the disk has space for records.
	HasSpace() bool
}

// Options configure a log; zero values select the defaults.
type Options struct {
	Path         string        // required
	MaxBytes     int64         // size of a file at which it is rotated
	MaxRotated   int           // number of rotated files to keep
	Queue        int           // maximum number of queued records
	SyncEvery    time.Duration // interval of syncs; negative for no syncs
	QueueTimeout time.Duration // timeout of a caller while the queue is full
	Log          *slog.Logger  // for failures of the log itself
	// Disk is the disk of Path; nil means that it always has space. Without space, records
	// are counted as failed.
	Disk Disk
}

func (o *Options) complete() error {
	if o.Path == "" {
		return errors.New("audit: Path is required")
	}
	set := func(v *int, to int) {
		if *v <= 0 {
			*v = to
		}
	}
	set(&o.MaxRotated, DefaultMaxRotated)
	set(&o.Queue, DefaultQueue)
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	o.SyncEvery = cmp.Or(o.SyncEvery, DefaultSyncEvery)
	if o.QueueTimeout <= 0 {
		o.QueueTimeout = DefaultQueueTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Stats are counters of records, for metrics.
type Stats struct {
	Written int64 // written to the file
	Dropped int64 // not written because the queue was full
	Failed  int64 // not written because writing the file failed
	Queued  int   // in the queue now

	Suppressed int64 // denials that were only counted
}

// Log is an audit log.
type Log struct {
	opts       Options
	queue      chan Record
	flush      chan chan error
	reopen     chan chan error
	file       *rotatedFile
	readers    chan struct{} // semaphore that limits concurrent readers
	overflowed atomic.Bool   // set by a drop, cleared when the writer has caught up
	written    atomic.Int64
	dropped    atomic.Int64
	failing    atomic.Bool // the last write failed, and the failure was logged
	failed     atomic.Int64
	last       time.Time // of the last record; only the writer uses it

	closing sync.Once
	closed  chan struct{} // closed to stop the writer
	done    chan struct{} // closed when the writer has ended
	result  error         // error of closing the file; valid after done
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
		readers: make(chan struct{}, 2),
		closed:  make(chan struct{}),
		done:    make(chan struct{}),
	}
	var err error
	if l.file, err = openRotated(opts.Path, opts.MaxBytes, opts.MaxRotated, l.report); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	go l.write()
	return l, nil
}

// Record queues a record. It returns quickly, even if the disk hangs.
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
	if !l.overflowed.Load() {
		timer := time.NewTimer(l.opts.QueueTimeout)
		defer timer.Stop()
		select {
		case l.queue <- r:
			return
		case <-timer.C:
		case <-l.closed:
		}
		l.overflowed.Store(true)
	}
	l.dropped.Add(1)
}

// Flush waits until all earlier records are written and synced.
func (l *Log) Flush(ctx context.Context) error { return l.command(ctx, l.flush) }

// Reopen opens the file again after it was renamed, so that new records go to a new
// file. Earlier records are written to the old file first. If the new file cannot be
// opened, the log keeps writing to the old one.
func (l *Log) Reopen(ctx context.Context) error { return l.command(ctx, l.reopen) }

// command sends a command to the writer and waits for its result.
func (l *Log) command(ctx context.Context, commands chan<- chan error) error {
	result := make(chan error, 1)
	select {
	case commands <- result:
	case <-l.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close writes the queued records, syncs and closes the file.
func (l *Log) Close() error {
	l.closing.Do(func() { close(l.closed) })
	<-l.done
	return l.result
}

// Stats returns the counters.
func (l *Log) Stats() Stats {
	return Stats{Written: l.written.Load(), Dropped: l.dropped.Load(), Failed: l.failed.Load(), Queued: len(l.queue)}
}

// write is the writer goroutine. It combines queued records into one write, and syncs
// with a timer that runs only if there are unsynced records.
func (l *Log) write() {
	defer close(l.done)
	var syncTimer <-chan time.Time
	for {
		select {
		case r := <-l.queue:
			l.writeQueued(&r)
			if syncTimer == nil && l.opts.SyncEvery > 0 {
				syncTimer = time.After(l.opts.SyncEvery)
			}
		case <-syncTimer:
			syncTimer = nil
			l.report(l.file.sync())
		case result := <-l.flush:
			l.writeQueued(nil)
			err := l.file.sync()
			l.report(err)
			result <- err
		case result := <-l.reopen:
			l.writeQueued(nil)
			result <- l.file.reopen()
		case <-l.closed:
			l.writeQueued(nil)
			l.result = l.file.close()
			return
		}
	}
}

// writeQueued writes first, if it is not nil, and all queued records.
func (l *Log) writeQueued(first *Record) {
	n := int64(0)
	add := func(r Record) {
		r = r.clean()
		l.order(&r)
		l.file.append(r)
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
	if l.overflowed.Swap(false) {
		// A record reports the gap.
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

// maxReorder is how much later than its own time a record may be dated so that times increase.
const maxReorder = time.Second

// order makes the times in the file increase. Readers get the next page by the time of the last record, so a record
// with an equal time, or one that overtook others in the queue, would be on no page. Only the writer
// calls order.
func (l *Log) order(r *Record) {
	if behind := l.last.Sub(r.Time); behind >= 0 && behind < maxReorder {
		r.Time = l.last.Add(1)
	}
	l.last = r.Time
}

var errDiskFull = errors.New("disk is nearly full; records are counted but not written until space is freed")

func (l *Log) writeFile() error {
	if l.opts.Disk != nil && !l.opts.Disk.HasSpace() {
		l.file.pending.Reset()
		return errDiskFull
	}
	return l.file.write()
}

func (l *Log) report(err error) {
	if err != nil {
		l.opts.Log.LogAttrs(context.Background(), slog.LevelError,
			"writing the audit log failed; records may be missing", slog.Any("error", err))
	}
}
