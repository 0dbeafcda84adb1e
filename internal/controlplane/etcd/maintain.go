package etcd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

const (
	// maintainEvery is how often the member looks after itself.
	maintainEvery = 5 * time.Second
	// maintainPause is the least time between two looks that callers ask for.
	maintainPause = 200 * time.Millisecond
	// maintainTimeout bounds one compaction.
	maintainTimeout = time.Minute
	// defragPause is the least time between two defragmentations, and longPause
	// between two that nothing depends on.
	defragPause = 10 * time.Second
	longPause   = 10 * time.Minute
	// pressed is where history is compacted before its time, in percent of the
	// quota. The resource API compacts every few minutes anyway.
	pressed = 75
	// quickDefrag is how much may be in use for a defragmentation that nothing
	// depends on: calls wait while it is copied, about a second for this much.
	quickDefrag = 128 << 20
)

// Room implements Store.
func (m *Member) Room() Room {
	backend := m.etcd.Server.Backend()
	return Room{
		File: backend.Size(), Used: backend.SizeInUse(), Quota: m.quota,
		Exhausted: slices.ContainsFunc(m.etcd.Server.Alarms(),
			func(a *pb.AlarmMember) bool { return a.Alarm == pb.AlarmType_NOSPACE }),
	}
}

// Relieve implements Store.
func (m *Member) Relieve() {
	select {
	case m.relieve <- struct{}{}:
	default: // it has been asked for already
	}
}

// maintain keeps the store from filling up with history and free pages. Old
// revisions stay for at least one round, so that watchers keep up, unless there
// is no room any more.
func (m *Member) maintain() {
	defer close(m.maintained)
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	before := m.revision()
	var defragged time.Time
	for {
		select {
		case <-m.closed:
			return
		case <-tick.C:
		case <-m.relieve:
		}
		now := m.revision()
		room := m.Room()
		switch {
		case !room.TakesGrowth(0):
			m.compact(now)
		case room.Used > room.Quota/100*pressed:
			m.compact(before)
		}
		before = now
		room = m.Room()
		since := time.Since(defragged)
		if room.needsDefrag() && since > defragPause || room.deservesDefrag() && since > longPause {
			m.defragment(room)
			defragged = time.Now()
		}
		m.disarm()
		if !m.pause() {
			return
		}
	}
}

// pause keeps callers from having the member do nothing but maintenance; false
// when it is being closed.
func (m *Member) pause() bool {
	timer := time.NewTimer(maintainPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.closed:
		return false
	}
}

// recoverSpace is for a member that begins full. Nobody waits for it yet.
func (m *Member) recoverSpace() {
	room := m.Room()
	if room.Exhausted || !room.TakesChanges(0) || room.File > room.Quota {
		m.log.Warn("the resource store is full, making room", slog.Int64("file", room.File),
			slog.Int64("used", room.Used), slog.Int64("quota", room.Quota))
		m.compact(m.revision())
		if room = m.Room(); room.needsDefrag() {
			m.defragment(room)
		}
	}
	m.disarm()
}

func (m *Member) revision() int64 { return m.etcd.Server.KV().Rev() }

// patience ends after a while, and when the member is closed: without a majority no
// call would come back before.
func (m *Member) patience() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), maintainTimeout)
	go func() {
		select {
		case <-m.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// compact forgets what was before a revision.
func (m *Member) compact(revision int64) {
	ctx, cancel := m.patience()
	defer cancel()
	_, err := m.etcd.Server.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		m.log.Warn("compacting etcd failed, trying again", slog.String("error", err.Error()))
	}
}

// needsDefrag says that the file must shrink, or etcd will refuse writes although
// there is room within it.
func (r Room) needsDefrag() bool {
	return (r.Exhausted || r.File > r.Quota) && r.File-r.Used > r.File/10
}

// deservesDefrag says that much of the file is free, and the rest quickly copied.
func (r Room) deservesDefrag() bool {
	return r.File-r.Used > max(quickDefrag/2, r.File/2) && r.Used < quickDefrag
}

// defragment gives free pages back to the disk. Calls wait meanwhile.
func (m *Member) defragment(before Room) {
	began := time.Now()
	if err := m.etcd.Server.Backend().Defrag(); err != nil {
		m.log.Warn("defragmenting etcd failed, trying again", slog.String("error", err.Error()))
		return
	}
	m.log.Info("etcd was defragmented", slog.Int64("before", before.File), slog.Int64("after", m.Room().File),
		slog.Duration("took", time.Since(began)))
}

// disarm has etcd write again once its file is small enough. etcd never does so by
// itself.
func (m *Member) disarm() {
	room := m.Room()
	if !room.Exhausted || room.File >= m.hard-m.hard/20 {
		return
	}
	ctx, cancel := m.patience()
	defer cancel()
	_, err := m.etcd.Server.Alarm(ctx, &pb.AlarmRequest{
		MemberID: uint64(m.etcd.Server.MemberID()), Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE,
	})
	if err != nil {
		m.log.Warn("etcd still refuses to store anything, trying again", slog.String("error", err.Error()))
		return
	}
	m.log.Info("etcd stores again")
}
