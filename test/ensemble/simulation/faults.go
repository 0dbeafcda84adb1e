package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"freshet/internal/ensemble/replicated"
)

// upTo returns a random time. Only the goroutine that injects faults calls it.
func (w *world) upTo(longest time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(longest)))
}

// crash crashes a member.
func (w *world) crash(name string) {
	if m := w.remove(name); m != nil {
		w.fault("crash of %s", name)
		w.disks[name] = m.crash(w)
	}
}

// restart stops a member in order and starts it again.
func (w *world) restart(ctx context.Context, name string) {
	if m := w.remove(name); m != nil {
		w.fault("restart of %s", name)
		m.stop(w)
		w.again(ctx, name)
	}
}

// again starts a member that does not run after a while.
func (w *world) again(ctx context.Context, name string) {
	time.Sleep(w.upTo(6 * time.Second))
	if w.get(name) == nil {
		_ = w.up(ctx, name) // finish starts those that did not start in time
	}
}

// isolate cuts a member off for a while.
func (w *world) isolate(name string, fromEtcd, fromLog bool) {
	m := w.get(name)
	if m == nil {
		return
	}
	w.fault("%s is cut off from etcd %v, from the log %v", name, fromEtcd, fromLog)
	if fromEtcd {
		m.etcd.Cut()
	}
	if fromLog {
		m.nats.Cut()
	}
	time.Sleep(w.upTo(8 * time.Second))
	m.etcd.Restore()
	m.nats.Restore()
}

// expire ends the lease of a shard's owner in etcd early, as with a clock that is too fast, while the owner
// cannot learn it: for up to three seconds two members consider themselves the owner. Writes must depend on no
// clock. Reads do, so those of this member are not checked for a while.
func (w *world) expire(shard int) {
	m, _ := w.owner(shard, nil)
	if m == nil {
		return
	}
	w.fault("lease of %s, the owner of shard %d, ends early", m.name, shard)
	m.staleUntil.Store(time.Now().Add(time.Minute).UnixNano())
	m.etcd.Cut()
	w.etcd.Expire(membersPrefix + "/live/" + m.name)
	time.Sleep(time.Second + w.upTo(3*time.Second))
	m.etcd.Restore()
	m.staleUntil.Store(time.Now().Add(2 * leaseTTL).UnixNano())
}

// anyStream returns the name of a stream.
func (w *world) anyStream() string {
	all := w.nats.Names() // there is one, because members have started
	return all[w.random.IntN(len(all))]
}

// logOf returns the name of the stream of a shard's log. A log that has replaced another one has a longer
// name.
func (w *world) logOf(shard int) string {
	first := fmt.Sprintf("S_%s_%d", clusterID, shard)
	for _, name := range w.nats.Names() {
		if strings.HasPrefix(name, first+"-") {
			return name
		}
	}
	return first
}

// elect moves the leader of a stream. It returns how long the stream has none.
func (w *world) elect(stream string) time.Duration {
	leaderless := w.upTo(3 * time.Second)
	w.fault("election in %s for %s", stream, leaderless.Round(time.Millisecond))
	w.nats.Elect(stream, leaderless)
	return leaderless
}

// crashInElection crashes the owner of a shard while its log has no leader, so appends are in flight.
func (w *world) crashInElection(ctx context.Context, shard int) {
	m, _ := w.owner(shard, nil)
	if m == nil {
		return
	}
	time.Sleep(w.elect(w.logOf(shard)) / 2)
	w.crash(m.name)
	w.again(ctx, m.name)
}

// crashBeforeLaggards crashes the owner of a shard while the other members have not read the end of its log.
func (w *world) crashBeforeLaggards(ctx context.Context, shard int) {
	m, _ := w.owner(shard, nil)
	if m == nil {
		return
	}
	for _, other := range w.running() {
		if other != m {
			other.nats.Cut()
		}
	}
	w.fault("others than %s are cut off from the log", m.name)
	time.Sleep(w.upTo(4 * time.Second))
	w.crash(m.name)
	time.Sleep(w.upTo(4 * time.Second))
	for _, other := range w.running() {
		other.nats.Restore()
	}
	w.again(ctx, m.name)
}

// damage damages one replica of a stream. Some time later the replica is replaced with a good one, as
// a member that verifies its files does.
func (w *world) damage(stream string) {
	w.fault("damage in %s", stream)
	w.nats.Damage(stream)
	time.Sleep(w.upTo(5 * time.Second))
	w.nats.Heal(stream)
}

// damageNext damages the next messages of a shard's log on one replica while they are written. Its owner may
// crash before the replica is replaced.
func (w *world) damageNext(shard int) {
	w.fault("messages of shard %d are damaged while they are written", shard)
	w.nats.DamageNext(w.logOf(shard), 1+w.random.IntN(3))
	time.Sleep(w.upTo(3 * time.Second))
	if m, _ := w.owner(shard, nil); m != nil && w.random.IntN(2) == 0 {
		w.crash(m.name)
		time.Sleep(w.upTo(3 * time.Second))
	}
	w.nats.Heal(w.logOf(shard))
}

// loseEnd ends all members, removes the end of a shard's log, and starts the members. The members that crash
// lose what their copies have not flushed, but not their marks, which they publish before the log has a leader
// again. So the shard has to stay closed, or get everything back from a copy.
func (w *world) loseEnd(ctx context.Context) {
	orderly := w.random.IntN(4) // the more members stop in order, the more often a copy has everything
	for _, at := range w.random.Perm(len(names)) {
		m := w.remove(names[at])
		switch {
		case m == nil:
		case w.random.IntN(3) < orderly:
			w.fault("stop of %s", m.name)
			m.stop(w)
		default:
			w.fault("crash of %s", m.name)
			w.disks[m.name] = m.crash(w)
		}
	}
	shard := w.random.IntN(shardCount)
	lost := w.nats.LoseEnd(w.logOf(shard), 1+w.random.Uint64N(200))
	w.fault("log of shard %d loses its last %d messages", shard, lost)
	w.endLost[shard] = true
	w.startAll(ctx)
}

// startAll starts all members at the same time, after they have published their marks.
func (w *world) startAll(ctx context.Context) {
	for _, name := range names {
		if w.disks[name] == nil {
			w.disks[name] = w.newFS(name)
			w.homes[name] = w.dir + "/" + name + "/home-0"
		}
		if err := w.publishMarks(ctx, name); err != nil {
			w.violation("member %s does not publish its marks: %v", name, err)
		}
	}
	var starting sync.WaitGroup
	for _, name := range names {
		starting.Go(func() {
			if err := w.up(ctx, name); err != nil && ctx.Err() == nil {
				w.violation("member %s does not start: %v", name, err)
			}
		})
	}
	starting.Wait()
}

// publishMarks does what a member does before its NATS server starts.
func (w *world) publishMarks(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	client := w.etcd.Link().Client(ctx)
	defer func() { _ = client.Close() }() // it has no connection of its own
	files := replicated.FindMarks(clusterID, shardCount, func(number int) string { return w.shardDir(name, number) })
	for {
		err := replicated.PublishMarks(ctx, client, shardsPrefix, name, files)
		if err == nil {
			return nil
		}
		time.Sleep(time.Second) // as a process manager
	}
}
