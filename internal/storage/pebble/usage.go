package pebble

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// unloadedUsage is the usage of topics that are not in memory, as of the time when they were
// unloaded; it does not change while a topic is unloaded. Topics without data have no entry.
// Protected by topicTable.mu.
type unloadedUsage struct {
	requested atomic.Bool // Usage or Totals was called, so unloading remembers the usage
	byTopic   map[engine.TopicID]engine.Usage
	surveying engine.TopicID // topic that the survey is reading; 0 when it was loaded meanwhile
}

// forgetLocked removes and returns the remembered usage when a topic is loaded or created.
// The caller holds topicTable.mu.
func (u *unloadedUsage) forgetLocked(id engine.TopicID) engine.Usage {
	known := u.byTopic[id]
	delete(u.byTopic, id)
	if u.surveying == id {
		u.surveying = 0
	}
	return known
}

func (u *unloadedUsage) rememberLocked(f engine.Usage) {
	if f.Stored != 0 || f.Backlog != 0 || f.Subscriptions != 0 {
		u.byTopic[f.Topic] = f
	}
}

// Usage implements engine.Statistics.
func (e *Engine) Usage(ctx context.Context, visit func(engine.Usage)) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	tt := &e.topics
	e.startUsage()
	tt.mu.RLock()
	loaded := make([]*topic, 0, len(tt.m))
	for _, t := range tt.m {
		loaded = append(loaded, t)
	}
	tt.mu.RUnlock()
	seen := make(map[engine.TopicID]struct{}, len(loaded))
	for _, t := range loaded {
		if !t.available() {
			continue
		}
		f, err := t.usage()
		if err != nil {
			continue // deleted or unloaded meanwhile, or damaged, which its users get as an error
		}
		seen[t.id] = struct{}{}
		visit(f)
	}
	tt.mu.RLock()
	unloaded := make([]engine.Usage, 0, len(tt.usage.byTopic))
	for _, f := range tt.usage.byTopic {
		unloaded = append(unloaded, f)
	}
	tt.mu.RUnlock()
	for _, f := range unloaded {
		if _, ok := seen[f.Topic]; !ok { // otherwise it was unloaded meanwhile
			visit(f)
		}
	}
	return ctx.Err()
}

// UsageOf implements engine.Statistics.
func (e *Engine) UsageOf(ctx context.Context, ids []engine.TopicID, visit func(engine.Usage)) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	tt := &e.topics
	e.startUsage()
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		tt.mu.RLock()
		t, loaded := tt.m[id]
		f, remembered := tt.usage.byTopic[id]
		tt.mu.RUnlock()
		if loaded && t.available() {
			var err error
			f, err = t.usage()
			remembered = err == nil // otherwise deleted, unloaded or damaged, as in Usage
		}
		if remembered {
			visit(f)
		}
	}
	return nil
}

// startUsage makes unloading remember the usage of topics from now on, and starts the survey
// of the topics that were stored before.
func (e *Engine) startUsage() {
	if !e.topics.usage.requested.Load() && !e.topics.usage.requested.Swap(true) {
		go e.survey()
	}
}

// available reports whether the topic is loaded, durable and not deleted.
func (t *topic) available() bool {
	select {
	case <-t.ready:
	default:
		return false
	}
	return t.err == nil && !t.deleted.Load() && (t.createdBy == nil || t.createdBy.durable())
}

// lastUsage returns the usage to remember of a topic that is about to be unloaded.
func (tt *topicTable) lastUsage(t *topic) (engine.Usage, error) {
	if !tt.usage.requested.Load() || !t.available() {
		return engine.Usage{}, nil
	}
	return t.usage()
}

// usage returns the topic's usage. It does not count as a use of the topic.
func (t *topic) usage() (engine.Usage, error) {
	f := engine.Usage{Topic: t.id, Stored: t.storedNow()}
	t.mu.RLock()
	subs := make([]*subscription, 0, len(t.subs))
	for _, s := range t.subs {
		subs = append(subs, s)
	}
	t.mu.RUnlock()
	for _, s := range subs {
		if s.createdBy != nil && !s.createdBy.durable() {
			continue
		}
		f.Subscriptions++
		if err := s.addUsage(&f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// oldestMessage is the first message of a cursor's backlog and its publish time.
type oldestMessage struct {
	entry   uint64
	publish int64
}

// addUsage adds the subscription's usage to f. It reads messages outside of s.mu, and only
// when a cursor has moved since the last call.
func (s *subscription) addUsage(f *engine.Usage) error {
	if err := s.lockLoaded(); err != nil {
		return err
	}
	f.Leased += uint64(s.leased)
	type cursorPosition struct {
		c     *cursor
		entry uint64
	}
	var moved []cursorPosition
	for _, c := range s.cursors {
		n := c.backlogLocked()
		f.Backlog += n
		switch {
		case n == 0:
		case c.oldestSeen.publish != 0 && c.oldestSeen.entry == c.floor:
			f.ObserveOldest(c.oldestSeen.publish)
		default:
			moved = append(moved, cursorPosition{c, c.floor})
		}
	}
	s.mu.Unlock()
	for _, p := range moved {
		head, err := p.c.part.head(p.entry)
		if errors.Is(err, cdb.ErrNotFound) || errors.Is(err, engine.ErrCorrupt) {
			continue // trimmed meanwhile, or damaged, so that its age is unknown
		}
		if err != nil {
			return err
		}
		f.ObserveOldest(head.publish)
		s.mu.Lock()
		p.c.oldestSeen = oldestMessage{p.entry, head.publish}
		s.mu.Unlock()
	}
	return nil
}

const (
	surveyPage = 1_000
	// The survey pauses surveyRest times as long as it has worked, so that it uses at most 2 % of a core.
	surveyRest = 49
	// minSurveyPause is how much rest is collected before a pause: shorter timers cost more than they give.
	minSurveyPause = 5 * time.Millisecond
	// maxSurveyWork limits the measured time of a topic: a goroutine that waits for a processor or the disk
	// does not work.
	maxSurveyWork = 10 * time.Millisecond
)

// survey reads once the usage of the topics that were stored before the engine was opened,
// slowly and without loading them. Topics that are loaded meanwhile are counted by loading.
func (e *Engine) survey() {
	ctx := context.Background()
	began := time.Now()
	var owed time.Duration // rest for the work since the last pause
	rest := func() (more bool) {
		owed += surveyRest * min(time.Since(began), maxSurveyWork)
		if owed >= minSurveyPause {
			pause := time.NewTimer(owed)
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-e.closing:
				return false
			}
			owed = 0
		}
		began = time.Now()
		return true
	}
	for after := engine.TopicID(0); ; {
		ids, err := e.ListTopics(ctx, after, surveyPage)
		if err != nil || len(ids) == 0 {
			return // the engine is closed or has failed, or this was the last page
		}
		for _, id := range ids {
			if !rest() || e.surveyTopic(ctx, id) != nil {
				return
			}
		}
		after = ids[len(ids)-1]
	}
}

// surveyTopic reads the usage of a topic that is not in memory. It returns an error only when
// the engine is closed or has failed.
func (e *Engine) surveyTopic(ctx context.Context, id engine.TopicID) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	tt := &e.topics
	tt.mu.Lock()
	_, loaded := tt.m[id]
	_, known := tt.usage.byTopic[id]
	if loaded || known {
		tt.mu.Unlock()
		return nil
	}
	tt.usage.surveying = id
	tt.mu.Unlock()
	t := &topic{e: e, id: id} // a private copy, which no other goroutine uses
	err := t.restore()
	var f engine.Usage
	if err == nil && t.parts.Load() != nil {
		f, err = t.usage()
	}
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if err == nil && tt.usage.surveying == id { // otherwise it was loaded meanwhile
		tt.usage.rememberLocked(f)
		e.totals.add(f.Stored, f.Subscriptions)
	}
	tt.usage.surveying = 0
	return nil // users of a damaged topic get the error
}

// Disk implements engine.Statistics.
func (e *Engine) Disk() engine.Disk {
	d := engine.Disk{Used: -1, Available: -1}
	if e.enter(context.Background()) != nil {
		return d
	}
	defer e.leave()
	d = e.store.diskUsage()
	e.topics.mu.RLock()
	defer e.topics.mu.RUnlock()
	d.Loaded = len(e.topics.m)
	return d
}

// OnDeadLetter implements engine.Statistics.
func (e *Engine) OnDeadLetter(count func(engine.TopicID)) { e.deadLetters.onMoved.Store(&count) }
