package pebble

import (
	"sync/atomic"
	"time"
)

// guard watches the disk. Below the reserve no messages are taken; below a
// quarter of it no journal records either, so that what frees space (deleting
// topics, moving cursors) has the longest breath.
type guard struct {
	e        *Engine
	noAppend atomic.Bool
	noRecord atomic.Bool
	stop     chan struct{}
	ended    chan struct{}
}

const guardInterval = time.Second

// What appends leave untouched unless MinFreeBytes says otherwise, so that
// acknowledgements, deletions and compactions still have room: a twentieth of
// the disk, between what flushing a write buffer can take and a gigabyte.
const (
	reserveShare = 20
	leastReserve = defaultMemTable
	mostReserve  = 1 << 30
)

func (d *guard) reserve(total uint64) uint64 {
	if d.e.opts.MinFreeBytes > 0 {
		return uint64(d.e.opts.MinFreeBytes)
	}
	return min(max(total/reserveShare, leastReserve), mostReserve)
}

func (d *guard) start(e *Engine) {
	d.e = e
	d.stop = make(chan struct{})
	d.ended = make(chan struct{})
	if e.opts.MinFreeBytes < 0 || !d.look() {
		close(d.ended) // switched off, or the file system cannot say
		return
	}
	go d.run()
}

func (d *guard) close() {
	close(d.stop)
	<-d.ended
}

func (d *guard) full() bool        { return d.noAppend.Load() }
func (d *guard) nearlyEmpty() bool { return d.noRecord.Load() }

func (d *guard) run() {
	defer close(d.ended)
	ticker := time.NewTicker(guardInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.look()
		case <-d.stop:
			return
		}
	}
}

// look asks for the free space and reports whether there was an answer.
func (d *guard) look() bool {
	usage, err := d.e.fs.GetDiskUsage(d.e.dir)
	if err != nil {
		return false
	}
	reserve := d.reserve(usage.TotalBytes)
	full := usage.AvailBytes < reserve
	if d.noAppend.Load() {
		full = usage.AvailBytes < reserve+reserve/8 // come back only with some room
	}
	if was := d.noAppend.Swap(full); was != full {
		d.e.log.Warn("disk space", "full", full, "available", usage.AvailBytes, "reserve", reserve)
	}
	d.noRecord.Store(usage.AvailBytes < reserve/4)
	return true
}
