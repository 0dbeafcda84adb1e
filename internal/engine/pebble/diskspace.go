package pebble

import (
	"sync/atomic"
	"time"
)

// diskSpace watches the free space of the disk. Below the reserve no messages
// are taken; below a quarter of it no journal records either, so that what
// frees space (deleting topics, moving cursors) still works when nothing else
// does.
type diskSpace struct {
	e         *Engine
	noAppend  atomic.Bool
	noJournal atomic.Bool
	stop      chan struct{}
	ended     chan struct{}
}

const diskCheckInterval = time.Second

// What appends leave untouched unless MinFreeBytes says otherwise, so that
// acknowledgements, deletions and compactions still have room: a twentieth of
// the disk, between what flushing a write buffer can take and a gigabyte.
const (
	reserveShare = 20
	leastReserve = defaultMemTable
	mostReserve  = 1 << 30
)

func (d *diskSpace) reserve(total uint64) uint64 {
	if d.e.opts.MinFreeBytes > 0 {
		return uint64(d.e.opts.MinFreeBytes)
	}
	return min(max(total/reserveShare, leastReserve), mostReserve)
}

func (d *diskSpace) start(e *Engine) {
	d.e = e
	d.stop = make(chan struct{})
	d.ended = make(chan struct{})
	if e.opts.MinFreeBytes < 0 || !d.check() {
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

// critical says that no journal records are taken either.
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
	d.e.log.Warn(text, "dir", d.e.dir, "available", available, "reserve", reserve)
}

// check asks for the free space and reports whether there was an answer.
func (d *diskSpace) check() bool {
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
		d.report(full, usage.AvailBytes, reserve)
	}
	d.noJournal.Store(usage.AvailBytes < reserve/4)
	return true
}
