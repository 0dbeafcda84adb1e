package pebble

import (
	"log/slog"
	"math"
	"sync/atomic"
	"time"
)

// diskSpace monitors the free space of the disk. Below the reserve, messages are rejected.
// Below a quarter of it, journal records are rejected too, so that operations that free
// space (deleting topics, moving cursors) still work.
type diskSpace struct {
	s         *store
	noAppend  atomic.Bool
	noJournal atomic.Bool
	budget    atomic.Int64 // bytes that may be written before the next check
	stop      chan struct{}
	ended     chan struct{}
}

const diskCheckInterval = time.Second

// The reserve for acknowledgements, deletions and compactions, unless MinFreeBytes sets it:
// a twentieth of the disk, at least the size of a write buffer and at most 1 GiB, but never
// more than a quarter of the disk.
const (
	reserveShare    = 20
	maxReserveShare = 4
	minReserve      = defaultMemTable
	maxReserve      = 1 << 30
)

func (d *diskSpace) reserve(total uint64) uint64 {
	if d.s.opts.MinFreeBytes > 0 {
		return uint64(d.s.opts.MinFreeBytes)
	}
	return min(max(total/reserveShare, minReserve), maxReserve, total/maxReserveShare)
}

func (d *diskSpace) start() {
	d.budget.Store(math.MaxInt64)
	d.stop = make(chan struct{})
	d.ended = make(chan struct{})
	if d.s.opts.MinFreeBytes < 0 || !d.check() {
		close(d.ended) // disabled, or the file system does not report its free space
		return
	}
	go d.run()
}

func (d *diskSpace) close() {
	close(d.stop)
	<-d.ended
}

// full reports whether messages are rejected.
func (d *diskSpace) full() bool { return d.noAppend.Load() }

// admit reports whether there is space for size more bytes of messages, and counts them. A
// fast producer can fill a small disk between two checks, so the bytes since the last check
// are counted; twice, because they are written to the log and later to a table.
func (d *diskSpace) admit(size int64) bool {
	if d.noAppend.Load() {
		return false
	}
	if d.budget.Add(-2*size) < 0 {
		d.check()
	}
	return !d.noAppend.Load()
}

// critical reports whether journal records are rejected, except those that free space.
func (d *diskSpace) critical() bool { return d.noJournal.Load() }

func (d *diskSpace) run() {
	defer close(d.ended)
	ticker := time.NewTicker(diskCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.check()
		case <-d.stop:
			return
		}
	}
}

// report logs that messages are rejected, or accepted again.
func (d *diskSpace) report(full bool, available, reserve uint64) {
	text := "disk has enough free space again; messages are accepted"
	if full {
		text = "disk is nearly full; messages are rejected until space is freed"
	}
	d.s.log.Warn(text, slog.String("dir", d.s.dir), slog.Uint64("available", available),
		slog.Uint64("reserve", reserve))
}

// check reads the free space and reports whether the file system returned it.
func (d *diskSpace) check() bool {
	usage, err := d.s.fs.GetDiskUsage(d.s.dir)
	if err != nil {
		return false
	}
	reserve := d.reserve(usage.TotalBytes)
	full := usage.AvailBytes < reserve
	if d.noAppend.Load() {
		full = usage.AvailBytes < reserve+reserve/8 // hysteresis: accept again only with some margin
	}
	if was := d.noAppend.Swap(full); was != full {
		d.report(full, usage.AvailBytes, reserve)
	}
	d.budget.Store(int64(usage.AvailBytes) - int64(reserve))
	d.noJournal.Store(usage.AvailBytes < reserve/4)
	return true
}
