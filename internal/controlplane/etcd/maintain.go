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
	// maintainInterval is the interval between two maintenance rounds.
	maintainInterval = 5 * time.Second
	// minMaintainInterval is the minimum interval between two rounds that callers request.
	minMaintainInterval = 200 * time.Millisecond
	// maintainTimeout bounds one compaction.
	maintainTimeout = time.Minute
	// defragInterval is the minimum interval between two defragmentations that are necessary,
	// optionalDefragInterval between two that only free disk space.
	defragInterval         = 10 * time.Second
	optionalDefragInterval = 10 * time.Minute
	// compactPercent is the usage, in percent of the quota, from which history is compacted early. The
	// resource API compacts every few minutes anyway.
	compactPercent = 75
	// quickDefragBytes is the maximum number of used bytes for a defragmentation that is not necessary.
	// Calls wait while the pages are copied, about a second for this many bytes.
	quickDefragBytes = 128 << 20
)

// Space implements Store.
func (m *Member) Space() Space {
	backend := m.etcd.Server.Backend()
	return Space{
		File: backend.Size(), Used: backend.SizeInUse(), Quota: m.callerQuota,
		Exhausted: slices.ContainsFunc(m.etcd.Server.Alarms(),
			func(a *pb.AlarmMember) bool { return a.Alarm == pb.AlarmType_NOSPACE }),
	}
}

// RequestCompaction implements Store.
func (m *Member) RequestCompaction() {
	select {
	case m.compactRequests <- struct{}{}:
	default: // a request is pending already
	}
}

// maintain keeps the store from filling up with history and free pages. It keeps old revisions for
// at least one round, so that watchers can catch up, unless there is no free space.
func (m *Member) maintain() {
	defer close(m.maintainDone)
	tick := time.NewTicker(maintainInterval)
	defer tick.Stop()
	before := m.revision()
	var defragged time.Time
	for {
		select {
		case <-m.closed:
			return
		case <-tick.C:
		case <-m.compactRequests:
		}
		now := m.revision()
		space := m.Space()
		switch {
		case !space.AllowsGrowth(0):
			m.compact(now)
		case space.Used > space.Quota/100*compactPercent:
			m.compact(before)
		}
		before = now
		space = m.Space()
		since := time.Since(defragged)
		if space.needsDefrag() && since > defragInterval || space.worthDefrag() && since > optionalDefragInterval {
			m.defragment(space)
			defragged = time.Now()
		}
		m.clearSpaceAlarm()
		if !m.pause() {
			return
		}
	}
}

// pause limits how often callers can trigger maintenance. It returns false when the member is being
// closed.
func (m *Member) pause() bool {
	timer := time.NewTimer(minMaintainInterval)
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
	space := m.Space()
	if space.Exhausted || !space.AllowsChanges(0) || space.File > space.Quota {
		m.log.Warn("resource store is full; compacting it", slog.Int64("file", space.File),
			slog.Int64("used", space.Used), slog.Int64("quota", space.Quota))
		m.compact(m.revision())
		if space = m.Space(); space.needsDefrag() {
			m.defragment(space)
		}
	}
	m.clearSpaceAlarm()
}

func (m *Member) revision() int64 { return m.etcd.Server.KV().Rev() }

// maintainContext returns a context that ends after maintainTimeout and when the member is closed. Without
// a majority no call would return earlier.
func (m *Member) maintainContext() (context.Context, context.CancelFunc) {
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
	ctx, cancel := m.maintainContext()
	defer cancel()
	_, err := m.etcd.Server.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		m.log.Warn("compacting etcd failed; retrying", slog.Any("error", err))
	}
}

// needsDefrag reports whether the file must shrink because etcd would otherwise reject writes
// although the file has free pages.
func (r Space) needsDefrag() bool {
	return (r.Exhausted || r.File > r.Quota) && r.File-r.Used > r.File/10
}

// worthDefrag reports whether most of the file is free and the rest can be copied quickly.
func (r Space) worthDefrag() bool {
	return r.File-r.Used > max(quickDefragBytes/2, r.File/2) && r.Used < quickDefragBytes
}

// defragment returns free pages to the file system. Calls wait meanwhile.
func (m *Member) defragment(before Space) {
	began := time.Now()
	if err := m.etcd.Server.Backend().Defrag(); err != nil {
		m.log.Warn("defragmenting etcd failed; retrying", slog.Any("error", err))
		return
	}
	m.log.Info("defragmented etcd", slog.Int64("before", before.File), slog.Int64("after", m.Space().File),
		slog.Duration("took", time.Since(began)))
}

// clearSpaceAlarm clears etcd's NOSPACE alarm once the file is small enough. etcd never clears the alarm
// itself.
func (m *Member) clearSpaceAlarm() {
	space := m.Space()
	if !space.Exhausted || space.File >= m.backendQuota-m.backendQuota/20 {
		return
	}
	ctx, cancel := m.maintainContext()
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
