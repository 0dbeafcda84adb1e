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
	// maintainEvery is the interval between two maintenance rounds.
	maintainEvery = 5 * time.Second
	// maintainPause is the minimum interval between two rounds that callers request.
	maintainPause = 200 * time.Millisecond
	// maintainTimeout bounds one compaction.
	maintainTimeout = time.Minute
	// defragPause is the minimum interval between two defragmentations that are necessary,
	// longPause between two that only free disk space.
	defragPause = 10 * time.Second
	longPause   = 10 * time.Minute
	// pressed is the usage, in percent of the quota, from which history is compacted early. The
	// resource API compacts every few minutes anyway.
	pressed = 75
	// quickDefrag is the maximum number of used bytes for a defragmentation that is not necessary.
	// Calls wait while the pages are copied, about a second for this many bytes.
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
	default: // a request is pending already
	}
}

// maintain keeps the store from filling up with history and free pages. It keeps old revisions for
// at least one round, so that watchers can catch up, unless there is no free space.
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

// pause limits how often callers can trigger maintenance. It returns false when the member is being
// closed.
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

// recoverSpace frees space in a member that is full when it starts. There are no clients yet.
func (m *Member) recoverSpace() {
	room := m.Room()
	if room.Exhausted || !room.TakesChanges(0) || room.File > room.Quota {
		m.log.Warn("resource store is full; compacting it", slog.Int64("file", room.File),
			slog.Int64("used", room.Used), slog.Int64("quota", room.Quota))
		m.compact(m.revision())
		if room = m.Room(); room.needsDefrag() {
			m.defragment(room)
		}
	}
	m.disarm()
}

func (m *Member) revision() int64 { return m.etcd.Server.KV().Rev() }

// patience returns a context that ends after maintainTimeout and when the member is closed. Without
// a majority no call would return earlier.
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

// compact removes the history before a revision.
func (m *Member) compact(revision int64) {
	ctx, cancel := m.patience()
	defer cancel()
	_, err := m.etcd.Server.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		m.log.Warn("compacting etcd failed; retrying", slog.Any("error", err))
	}
}

// needsDefrag reports whether the file must shrink because etcd would otherwise reject writes
// although the file has free pages.
func (r Room) needsDefrag() bool {
	return (r.Exhausted || r.File > r.Quota) && r.File-r.Used > r.File/10
}

// deservesDefrag reports whether most of the file is free and the rest can be copied quickly.
func (r Room) deservesDefrag() bool {
	return r.File-r.Used > max(quickDefrag/2, r.File/2) && r.Used < quickDefrag
}

// defragment returns free pages to the file system. Calls wait meanwhile.
func (m *Member) defragment(before Room) {
	began := time.Now()
	if err := m.etcd.Server.Backend().Defrag(); err != nil {
		m.log.Warn("defragmenting etcd failed; retrying", slog.Any("error", err))
		return
	}
	m.log.Info("defragmented etcd", slog.Int64("before", before.File), slog.Int64("after", m.Room().File),
		slog.Duration("took", time.Since(began)))
}

// disarm clears etcd's NOSPACE alarm once the file is small enough. etcd never clears the alarm
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
		m.log.Warn("clearing etcd's space alarm failed; etcd still rejects writes; retrying", slog.Any("error", err))
		return
	}
	m.log.Info("etcd accepts writes again")
}
