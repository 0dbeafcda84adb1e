package pebble

import (
	"encoding/binary"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// trimmer trims topics when they are due and unloads idle ones. The due times are in the
// store, one key per topic, so that an idle topic costs nothing until it is due, and a crash
// loses nothing. mu protects soon.
type trimmer struct {
	e        *Engine
	mu       sync.Mutex
	soon     []dueTopic   // due within soonWindow: possibly not in the store yet
	next     atomic.Int64 // epoch milliseconds when its timer fires
	evictNow atomic.Bool  // too many topics are loaded
	wakeup   chan struct{}
	stop     chan struct{}
	ended    chan struct{}
}

type dueTopic struct {
	due int64
	id  engine.TopicID
}

const (
	soonWindow = time.Minute
	// trimInterval is the shortest time between two rounds.
	trimInterval = 20 * time.Millisecond
	// trimRound limits how many topics are trimmed in one round.
	trimRound = 1000
)

func (tr *trimmer) start(e *Engine) {
	tr.e = e
	tr.next.Store(math.MaxInt64)
	tr.wakeup = make(chan struct{}, 1)
	tr.stop = make(chan struct{})
	tr.ended = make(chan struct{})
	go tr.run()
}

func (tr *trimmer) close() {
	close(tr.stop)
	<-tr.ended
}

// scheduleTrimLocked adds the topic to the due index, unless the index has it with an
// earlier time. The caller holds committer.mu.
func (t *topic) scheduleTrimLocked(g *commitBatch, due int64) {
	if t.trimDue != 0 && t.trimDue <= due || t.deleted.Load() {
		return
	}
	t.unscheduleTrimLocked(g)
	t.trimDue = due
	var body wire.Writer
	body.Varint(due)
	g.setLocked(dueKey(due, t.id), nil)
	g.setLocked(topicKey(ofDue, t.id), body)
	g.pinLocked(t)
	tr := &t.e.trimmer
	if due-time.Now().UnixMilli() > soonWindow.Milliseconds() {
		return
	}
	tr.mu.Lock()
	tr.soon = append(tr.soon, dueTopic{due, t.id})
	tr.mu.Unlock()
	if due < tr.next.Load() {
		tr.wake()
	}
}

func (tr *trimmer) wake() {
	select {
	case tr.wakeup <- struct{}{}:
	default:
	}
}

// requestEviction wakes the trimmer to unload idle topics now.
func (tr *trimmer) requestEviction() {
	if !tr.evictNow.Swap(true) {
		tr.wake()
	}
}

// unscheduleTrimLocked removes the topic from the due index. The caller holds committer.mu.
func (t *topic) unscheduleTrimLocked(g *commitBatch) {
	if t.trimDue != 0 {
		g.deleteLocked(dueKey(t.trimDue, t.id))
		g.deleteLocked(topicKey(ofDue, t.id))
		t.trimDue = 0
		g.pinLocked(t)
	}
}

// scheduleAfterAppendLocked schedules the trimming that an append makes necessary. The
// caller holds committer.mu.
func (t *topic) scheduleAfterAppendLocked(g *commitBatch, now int64) {
	c := t.config.Load()
	soon := now + t.e.opts.TrimDelay.Milliseconds()
	if c.TTL > 0 {
		t.scheduleTrimLocked(g, max(soon, now+c.TTL.Milliseconds()))
	}
	if c.BacklogEvict && c.BacklogBytes > 0 && t.stored > c.BacklogBytes {
		t.scheduleTrimLocked(g, soon)
	}
	if c.RetainAge >= 0 {
		t.scheduleTrimLocked(g, max(soon, now+c.RetainAge.Milliseconds()))
	}
	if c.RetainBytes >= 0 && t.stored > c.RetainBytes {
		t.scheduleTrimLocked(g, soon)
	}
}

// scheduleAfterAckLocked schedules the trimming that an acknowledgement makes possible. The
// caller holds committer.mu.
func (t *topic) scheduleAfterAckLocked(g *commitBatch, now int64) {
	c := t.config.Load()
	if c.RetainAge >= 0 && t.trimDue == 0 || c.RetainAge == 0 || c.RetainBytes >= 0 && t.stored > c.RetainBytes {
		t.scheduleTrimLocked(g, now+t.e.opts.TrimDelay.Milliseconds())
	}
}

func (tr *trimmer) run() {
	defer close(tr.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	nextEvict := time.Now().Add(tr.e.opts.IdleAfter / 2)
	for {
		select {
		case <-timer.C:
		case <-tr.wakeup:
		case <-tr.stop:
			return
		}
		now := time.Now()
		if full := tr.evictNow.Swap(false); full || !now.Before(nextEvict) {
			tr.e.topics.evict()
			nextEvict = now.Add(tr.e.opts.IdleAfter / 2)
		}
		tr.next.Store(math.MaxInt64) // a topic that is scheduled from here on wakes the trimmer
		next := nextEvict
		if due := tr.round(now); due != 0 && due < next.UnixMilli() {
			next = time.UnixMilli(due)
		}
		// Wait at least trimInterval, so that topics are trimmed together.
		sleep := max(time.Until(next), trimInterval)
		tr.next.Store(time.Now().Add(sleep).UnixMilli())
		timer.Reset(sleep)
	}
}

// round trims the topics that are due and returns when the next one is, 0 for unknown.
func (tr *trimmer) round(now time.Time) int64 {
	due, next := tr.due(now.UnixMilli())
	for _, id := range due {
		select {
		case <-tr.stop:
			return 0
		default:
		}
		if err := tr.e.trim(id); err != nil && tr.e.stopCause() == nil {
			tr.e.log.Error("topic could not be trimmed; retrying later", slog.Uint64("topic", uint64(id)),
				slog.Any("error", err))
		}
	}
	if len(due) >= trimRound {
		return now.UnixMilli()
	}
	return next
}

// due returns the topics that are due, and the time of the next one.
func (tr *trimmer) due(now int64) (ids []engine.TopicID, next int64) {
	seen := make(map[engine.TopicID]bool)
	earliest := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	tr.mu.Lock()
	rest := tr.soon[:0]
	for _, d := range tr.soon {
		if d.due > now {
			rest = append(rest, d)
			earliest(d.due)
		} else if !seen[d.id] {
			seen[d.id] = true
			ids = append(ids, d.id)
		}
	}
	tr.soon = rest
	tr.mu.Unlock()
	prefix := []byte{keyDue}
	err := tr.e.eachValue(prefix, after(prefix), func(key, _ []byte) (more bool, err error) {
		if len(ids) >= trimRound {
			return false, nil
		}
		at := int64(binary.BigEndian.Uint64(key[1:]))
		if at > now {
			earliest(at)
			return false, nil
		}
		if id := engine.TopicID(binary.BigEndian.Uint64(key[9:])); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		return true, nil
	})
	if err != nil {
		tr.e.log.Error("topics that are due for trimming could not be listed; retrying later", slog.Any("error", err))
	}
	return ids, next
}
