package pebble

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/engine"
)

// keeper trims topics when their time has come and unloads idle ones. What is
// due stands in the store, one key per topic, so that a topic nobody uses
// costs nothing until then, and a crash forgets nothing.
type keeper struct {
	e     *Engine
	mu    sync.Mutex
	soon  []dueTopic   // due within soonWindow: possibly not in the store yet
	next  atomic.Int64 // epoch milliseconds when it wakes by itself
	full  atomic.Bool  // too many topics are loaded
	nudge chan struct{}
	stop  chan struct{}
	ended chan struct{}
}

type dueTopic struct {
	due int64
	id  engine.TopicID
}

const (
	soonWindow = time.Minute
	// trimPause is the shortest time between two rounds.
	trimPause = 20 * time.Millisecond
	// trimRound bounds how many topics are trimmed before looking up again.
	trimRound = 1000
)

func (k *keeper) start(e *Engine) {
	k.e = e
	k.next.Store(math.MaxInt64)
	k.nudge = make(chan struct{}, 1)
	k.stop = make(chan struct{})
	k.ended = make(chan struct{})
	go k.run()
}

func (k *keeper) close() {
	close(k.stop)
	<-k.ended
}

// schedule enters the topic into the due index, unless it stands there earlier.
// The caller holds committer.mu.
func (t *topic) schedule(g *group, due int64) {
	if t.trimDue != 0 && t.trimDue <= due || t.deleted.Load() {
		return
	}
	t.unschedule(g)
	t.trimDue = due
	var body packer
	body.int(due)
	g.set(dueKey(due, t.id), nil)
	g.set(topicKey(ofDue, t.id), body)
	g.hold(t)
	k := &t.e.keeper
	if due-time.Now().UnixMilli() > soonWindow.Milliseconds() {
		return
	}
	k.mu.Lock()
	k.soon = append(k.soon, dueTopic{due, t.id})
	k.mu.Unlock()
	if due < k.next.Load() {
		k.wake()
	}
}

func (k *keeper) wake() {
	select {
	case k.nudge <- struct{}{}:
	default:
	}
}

// crowded asks for topics to be unloaded now.
func (k *keeper) crowded() {
	if !k.full.Swap(true) {
		k.wake()
	}
}

func (t *topic) unschedule(g *group) {
	if t.trimDue != 0 {
		g.delete(dueKey(t.trimDue, t.id))
		g.delete(topicKey(ofDue, t.id))
		t.trimDue = 0
		g.hold(t)
	}
}

// appended schedules what an append makes due. The caller holds committer.mu.
func (t *topic) appended(g *group, now int64) {
	c := t.config.Load()
	soon := now + t.e.opts.TrimDelay.Milliseconds()
	if c.TTL > 0 {
		t.schedule(g, max(soon, now+c.TTL.Milliseconds()))
	}
	if c.BacklogEvict && c.BacklogBytes > 0 && t.stored > c.BacklogBytes {
		t.schedule(g, soon)
	}
	if c.RetainAge >= 0 {
		t.schedule(g, max(soon, now+c.RetainAge.Milliseconds()))
	}
	if c.RetainBytes >= 0 && t.stored > c.RetainBytes {
		t.schedule(g, soon)
	}
}

// settled schedules what an acknowledgement makes due. The caller holds committer.mu.
func (t *topic) settled(g *group, now int64) {
	c := t.config.Load()
	if c.RetainAge >= 0 && t.trimDue == 0 || c.RetainAge == 0 || c.RetainBytes >= 0 && t.stored > c.RetainBytes {
		t.schedule(g, now+t.e.opts.TrimDelay.Milliseconds())
	}
}

func (k *keeper) run() {
	defer close(k.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	nextEvict := time.Now().Add(k.e.opts.IdleAfter / 2)
	for {
		select {
		case <-timer.C:
		case <-k.nudge:
		case <-k.stop:
			return
		}
		now := time.Now()
		if full := k.full.Swap(false); full || !now.Before(nextEvict) {
			k.e.topics.evict()
			nextEvict = now.Add(k.e.opts.IdleAfter / 2)
		}
		k.next.Store(math.MaxInt64) // what is scheduled from here on wakes us again
		next := nextEvict
		if due := k.round(now); due != 0 && due < next.UnixMilli() {
			next = time.UnixMilli(due)
		}
		// Topics are trimmed together rather than one by one.
		sleep := max(time.Until(next), trimPause)
		k.next.Store(time.Now().Add(sleep).UnixMilli())
		timer.Reset(sleep)
	}
}

// round trims what is due and returns when the next is, 0 for not known.
func (k *keeper) round(now time.Time) int64 {
	due, next := k.due(now.UnixMilli())
	for _, id := range due {
		select {
		case <-k.stop:
			return 0
		default:
		}
		if err := k.e.trim(id); err != nil && k.e.fault() == nil {
			k.e.log.Error("trim topic", "topic", uint64(id), "error", err)
		}
	}
	if len(due) >= trimRound {
		return now.UnixMilli()
	}
	return next
}

// due returns the topics whose time has come, and the time of the next one.
func (k *keeper) due(now int64) (ids []engine.TopicID, next int64) {
	seen := make(map[engine.TopicID]bool)
	earliest := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	k.mu.Lock()
	rest := k.soon[:0]
	for _, d := range k.soon {
		if d.due > now {
			rest = append(rest, d)
			earliest(d.due)
		} else if !seen[d.id] {
			seen[d.id] = true
			ids = append(ids, d.id)
		}
	}
	k.soon = rest
	k.mu.Unlock()
	prefix := []byte{keyDue}
	iter, err := k.e.db.NewIter(&cdb.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		k.e.log.Error("look for topics to trim", "error", err)
		return ids, next
	}
	defer iter.Close()
	for ok := iter.First(); ok && len(ids) < trimRound; ok = iter.Next() {
		at := int64(binary.BigEndian.Uint64(iter.Key()[1:]))
		if at > now {
			earliest(at)
			break
		}
		if id := engine.TopicID(binary.BigEndian.Uint64(iter.Key()[9:])); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, next
}
