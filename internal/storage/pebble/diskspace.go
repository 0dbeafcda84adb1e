package pebble

import (
	"math"
	"sync/atomic"
	"time"
)

// diskSpace watches the free space of the disk. Below the reserve no messages
// are taken; below a quarter of it no journal records either, so that what
// frees space (deleting topics, moving cursors) still works when nothing else
// does.
type diskSpace struct {
	s         *store
	noAppend  atomic.Bool
	noJournal atomic.Bool
	left      atomic.Int64 // what may be written before it is looked at again
	stop      chan struct{}
	ended     chan struct{}
}

const diskCheckInterval = time.Second

// What appends leave untouched unless MinFreeBytes says otherwise, so that
// acknowledgements, deletions and compactions still have room: a twentieth of
// the disk, between what flushing a write buffer can take and a gigabyte, but never
// more than a quarter of it.
const (
	reserveShare = 20
	largestShare = 4
	leastReserve = defaultMemTable
	mostReserve  = 1 << 30
)

func (d *diskSpace) reserve(total uint64) uint64 {
	if d.s.opts.MinFreeBytes > 0 {
		return uint64(d.s.opts.MinFreeBytes)
	}
	return min(max(total/reserveShare, leastReserve), mostReserve, total/largestShare)
}

func (d *diskSpace) start() {
	d.left.Store(math.MaxInt64)
	d.stop = make(chan struct{})
	d.ended = make(chan struct{})
	if d.s.opts.MinFreeBytes < 0 || !d.check() {
		close(d.ended) // switched off, or the file system cannot say
		return
	}
	go d.run()
}

func (d *diskSpace) close() {
	close(d.stop)
	<-d.ended
}

// full says that no messages are taken.
func (d *diskSpace) full() bool { return d.noAppend.Load() }

// takes says whether there is room for a message of so many bytes. A fast producer
// fills a small disk between two looks at it, so what it wrote since the last is
// counted, twice: in the log, and in a table later.
func (d *diskSpace) takes(size int64) bool {
	if d.noAppend.Load() {
		return false
	}
	if d.left.Add(-2*size) < 0 {
		d.check()
	}
	return !d.noAppend.Load()
}

// critical says that no journal records are taken either, but those that free
// something.
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

// report tells an operator that messages are refused, or taken again.
func (d *diskSpace) report(full bool, available, reserve uint64) {
	text := "disk has enough free space again; messages are taken"
	if full {
		text = "disk is nearly full; messages are refused until space is freed"
	}
	d.s.log.Warn(text, "dir", d.s.dir, "available", available, "reserve", reserve)
}

// check asks for the free space and reports whether there was an answer.
func (d *diskSpace) check() bool {
	usage, err := d.s.fs.GetDiskUsage(d.s.dir)
	if err != nil {
		return false
	}
	reserve := d.reserve(usage.TotalBytes)
	full := usage.AvailBytes < reserve
	if d.noAppend.Load() {
		full = usage.AvailBytes < reserve+reserve/8 // come back only with some room
	}
	if was := d.noAppend.Swap(full); was != full {
		d.report(full, usage.AvailBytes, reserve)
	}
	d.left.Store(int64(usage.AvailBytes) - int64(reserve))
	d.noJournal.Store(usage.AvailBytes < reserve/4)
	return true
}
