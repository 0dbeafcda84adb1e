package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// topic is a loaded topic. It stays loaded while it is pinned: by a call, or by a commit
// batch that has not completed yet. So loading a topic reads only durable data.
type topic struct {
	e            *Engine
	id           engine.TopicID
	ready        chan struct{} // closed when loaded, or err is set
	err          error
	createdBy    *commitBatch // the commit batch that created it; nil when it was loaded
	pins         atomic.Int32
	used         atomic.Bool  // used since the last search for idle topics
	countedUsage engine.Usage // usage that the totals contained before it was loaded

	config  atomic.Pointer[engine.TopicConfig] // changed under committer.mu
	parts   atomic.Pointer[[]*partition]       // changed under committer.mu
	deleted atomic.Bool                        // changed under committer.mu

	admin sync.Mutex // serializes administrative changes and moves of cursors

	mu      sync.RWMutex
	subs    map[string]*subscription
	nextSub uint32 // protected by admin

	waitMu  sync.Mutex
	waiting map[*subscription]struct{} // subscriptions with waiting consumers

	dedup dedup
	tail  broadcast // sent when any partition grows

	// protected by committer.mu
	pinnedBy *commitBatch
	trimDue  int64 // epoch milliseconds in the due index, 0 for none
	stored   int64 // bytes written and not trimmed
}

// topicTable holds the loaded topics. mu protects its fields.
type topicTable struct {
	e      *Engine
	mu     sync.RWMutex
	m      map[engine.TopicID]*topic
	counts map[countsKey]deliveryCounts // of subscriptions that were unloaded
	usage  unloadedUsage                // of topics that were unloaded
}

type countsKey struct {
	topic engine.TopicID
	sub   uint32
}

func (tt *topicTable) start(e *Engine) {
	tt.e = e
	tt.m = make(map[engine.TopicID]*topic)
	tt.counts = make(map[countsKey]deliveryCounts)
	tt.usage.byTopic = make(map[engine.TopicID]engine.Usage)
}

// acquire returns the topic loaded and pinned. The caller must call release.
func (tt *topicTable) acquire(ctx context.Context, id engine.TopicID) (*topic, error) {
	t, _, err := tt.open(ctx, id, nil)
	return t, err
}

// open is acquire, and creates the topic if it does not exist and create is not nil.
func (tt *topicTable) open(ctx context.Context, id engine.TopicID, create *engine.TopicConfig) (*topic, bool, error) {
	tt.mu.RLock()
	t := tt.m[id]
	if t != nil {
		t.pins.Add(1)
	}
	tt.mu.RUnlock()
	created := false
	if t == nil {
		var mine bool
		if t, mine = tt.reserve(id); mine {
			created = t.load(create)
			t.addToTotals()
			if t.err != nil {
				tt.forget(t)
			}
			close(t.ready)
		}
	}
	select {
	case <-t.ready:
	default:
		select {
		case <-t.ready:
		case <-ctx.Done():
			t.release()
			return nil, false, ctx.Err()
		}
	}
	if err := t.usable(ctx); err != nil {
		t.release()
		return nil, false, err
	}
	return t, created, nil
}

// usable returns nil when the topic is loaded, durable and not deleted.
func (t *topic) usable(ctx context.Context) error {
	if t.err != nil {
		return t.err
	}
	if t.createdBy != nil {
		if err := t.createdBy.wait(ctx); err != nil {
			return err
		}
	}
	if t.deleted.Load() {
		return engine.ErrNoTopic
	}
	if !t.used.Load() {
		t.used.Store(true)
	}
	return nil
}

// reserve adds an empty topic to the table for the caller to load, or returns the topic
// that another caller has added.
func (tt *topicTable) reserve(id engine.TopicID) (t *topic, mine bool) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if t = tt.m[id]; t == nil {
		t = &topic{e: tt.e, id: id, ready: make(chan struct{})}
		tt.m[id] = t
		mine = true
		t.countedUsage = tt.usage.forgetLocked(id)
		if len(tt.m) > tt.e.opts.MaxLoaded {
			tt.e.trimmer.requestEviction()
		}
	}
	t.pins.Add(1)
	return t, mine
}

// forget removes a topic from the table, and the counts of its subscriptions.
func (tt *topicTable) forget(t *topic, subs ...uint32) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if tt.m[t.id] == t {
		delete(tt.m, t.id)
	}
	for _, sub := range subs {
		delete(tt.counts, countsKey{t.id, sub})
	}
}

func (tt *topicTable) forgetSub(id engine.TopicID, sub uint32) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	delete(tt.counts, countsKey{id, sub})
}

func (t *topic) release() { t.pins.Add(-1) }

// load reads the topic from the store, or creates it with the configuration create.
func (t *topic) load(create *engine.TopicConfig) (created bool) {
	if create != nil {
		// Looking up a missing key is faster than scanning an empty range.
		if _, err := t.e.get(topicKey(ofConfig, t.id)); errors.Is(err, cdb.ErrNotFound) {
			t.err = t.create(*create)
			return t.err == nil
		}
	}
	if err := t.restore(); err != nil {
		t.err = fmt.Errorf("loading topic %d: %w", t.id, err)
	}
	if t.parts.Load() == nil && t.err == nil {
		t.err = engine.ErrNoTopic
	}
	return false
}

// create adds the topic to the current commit batch without waiting for it.
func (t *topic) create(config engine.TopicConfig) error {
	t.subs = make(map[string]*subscription)
	parts := make([]*partition, config.Partitions)
	for i := range parts {
		parts[i] = t.newPartition(int32(i))
	}
	t.parts.Store(&parts)
	t.config.Store(&config)
	g, err := t.e.commit.lockBatch()
	if err != nil {
		return err
	}
	defer t.e.commit.unlockAndCommit()
	g.setLocked(topicKey(ofConfig, t.id), packTopic(topicValue{config: config}))
	g.pinLocked(t)
	t.createdBy = g
	return nil
}

// restore reads everything of the topic except messages and the acknowledgements above
// its cursors' floors.
func (t *topic) restore() error {
	var r topicRestorer
	err := t.e.scanRange(topicPrefix(t.id), topicKey(ofAcks, t.id), func(key, body []byte) error {
		return r.take(t, key, body)
	})
	if err != nil || r.parts == nil {
		return err
	}
	if err := t.restoreEnds(r.parts); err != nil {
		return err
	}
	t.parts.Store(&r.parts)
	for _, s := range t.subs {
		s.restored()
	}
	return nil
}

// topicRestorer restores a topic from its keys in their order.
type topicRestorer struct {
	parts []*partition
	subs  map[uint32]*subscription
	now   int64
}

func (r *topicRestorer) take(t *topic, key, body []byte) error {
	kind, rest := key[topicPrefixLen], key[kindLen:]
	if kind == ofConfig {
		return r.config(t, body)
	}
	if r.parts == nil {
		return corrupt(key, "configuration of the topic is missing")
	}
	switch kind {
	case ofDue:
		u := unpack(body)
		t.trimDue = u.Varint()
		return u.Err()
	case ofSub:
		return r.sub(t, string(rest), body)
	case ofCursor:
		if s := r.subs[binary.BigEndian.Uint32(rest)]; s != nil {
			return s.restoreCursor(key, binary.BigEndian.Uint32(rest[4:]), body)
		}
		return nil
	}
	n := binary.BigEndian.Uint32(rest)
	if int64(n) >= int64(len(r.parts)) {
		return corrupt(key, fmt.Sprintf("key is for partition %d of a topic with %d partitions", n, len(r.parts)))
	}
	switch p := r.parts[n]; kind {
	case ofBatches:
		p.hasBatches.Store(true)
		return nil
	case ofHead:
		return p.restoreHead(body)
	case ofEra:
		return p.restoreEra(binary.BigEndian.Uint32(rest[4:]), body)
	case ofDelay:
		return p.restoreDelay(binary.BigEndian.Uint64(rest[4:]), body, r.now)
	}
	return nil // written by a later version
}

func (r *topicRestorer) config(t *topic, body []byte) error {
	v, err := unpackTopic(body)
	if err != nil {
		return err
	}
	t.config.Store(&v.config)
	t.nextSub = v.nextSub
	t.subs = make(map[string]*subscription)
	r.subs = make(map[uint32]*subscription)
	r.now = time.Now().UnixMilli()
	r.parts = make([]*partition, v.config.Partitions)
	for i := range r.parts {
		r.parts[i] = t.newPartition(int32(i))
	}
	return nil
}

func (r *topicRestorer) sub(t *topic, name string, body []byte) error {
	id, config, err := unpackSub(body)
	if err != nil {
		return fmt.Errorf("subscription %q: %w", name, err)
	}
	s := t.newSubscription(id, name, config, r.parts)
	s.counts = t.e.topics.countsOf(t.id, id)
	t.subs[name] = s
	r.subs[id] = s
	return nil
}

// restoreEnds restores the ends of all partitions from their newest messages.
func (t *topic) restoreEnds(parts []*partition) error {
	var iter *cdb.Iterator
	defer func() {
		if iter != nil {
			_ = iter.Close()
		}
	}()
	for i, p := range parts {
		if len(*p.eras.Load()) > 0 && iter == nil {
			prefix := []byte{keyMessage}
			var err error
			if iter, err = t.e.iterate(prefix, after(prefix)); err != nil {
				return err
			}
		}
		if err := p.restoreEnd(iter); err != nil {
			return fmt.Errorf("partition %d: %w", i, err)
		}
		t.stored += p.cum - p.firstCum.Load()
	}
	return nil
}

// partition returns the partition with an index.
func (t *topic) partition(index int32) (*partition, error) {
	parts := *t.parts.Load()
	if index < 0 || int(index) >= len(parts) {
		return nil, engine.ErrNoPartition
	}
	return parts[index], nil
}

// subscription returns the subscription with a name once it is durable.
func (t *topic) subscription(ctx context.Context, name string) (*subscription, error) {
	t.mu.RLock()
	s := t.subs[name]
	t.mu.RUnlock()
	if s == nil {
		return nil, engine.ErrNoSubscription
	}
	if s.createdBy != nil {
		if err := s.createdBy.wait(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// evictableLocked reports whether the topic can be unloaded without losing state. The
// caller holds topicTable.mu, so no pin can be added.
func (t *topic) evictableLocked() bool {
	if t.pins.Load() != 0 || t.deleted.Load() {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.subs {
		if s.busy() {
			return false
		}
	}
	return true
}

// evict unloads topics that were not used since the last call. When too many topics are
// loaded, it unloads used ones as well, down to three quarters of the limit.
func (tt *topicTable) evict() {
	tt.mu.RLock()
	var idle, used []*topic
	for _, t := range tt.m {
		if t.pins.Load() != 0 {
			continue
		}
		if t.used.Swap(false) {
			used = append(used, t)
		} else {
			idle = append(idle, t)
		}
	}
	loaded := len(tt.m)
	tt.mu.RUnlock()
	if limit := tt.e.opts.MaxLoaded; loaded > limit {
		spare := max(0, min(len(used), loaded-len(idle)-limit*3/4))
		idle = append(idle, used[:spare]...)
	}
	for _, t := range idle {
		tt.unload(t)
	}
}

// unload unloads a topic unless it is in use. It computes the topic's usage first, which
// is valid if the topic was not used since.
func (tt *topicTable) unload(t *topic) {
	usage, err := tt.lastUsage(t)
	if err != nil {
		return // retried at the next call of evict
	}
	stored := t.storedNow()
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if t.used.Load() || tt.m[t.id] != t || !t.evictableLocked() {
		return
	}
	delete(tt.m, t.id)
	if usage.Topic == t.id {
		tt.usage.rememberLocked(usage)
	} else {
		tt.e.totals.add(-stored, -len(t.subs)) // without usage statistics it is counted when it is loaded again
	}
	for _, s := range t.subs {
		if n := s.unload(); n != (deliveryCounts{}) {
			tt.counts[countsKey{t.id, s.id}] = n
		}
	}
}
