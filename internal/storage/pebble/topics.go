package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"freshet/internal/storage/engine"
)

// maxPartitions limits the memory of a loaded topic.
const maxPartitions = 1 << 14

func checkTopicConfig(c engine.TopicConfig) error {
	switch {
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return fmt.Errorf("%w: topic must have 1 to %d partitions, not %d", engine.ErrInvalid, maxPartitions,
			c.Partitions)
	case c.TTL < 0 || c.BacklogBytes < 0 || c.MaxUnacked < 0:
		return fmt.Errorf("%w: limits of a topic must not be negative", engine.ErrInvalid)
	}
	return nil
}

// CreateTopic implements engine.Topics.
func (e *Engine) CreateTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if err := checkTopicConfig(config); err != nil {
		return err
	}
	if err := e.checkMessageSpace(); err != nil {
		return err
	}
	t, created, err := e.topics.open(ctx, id, &config)
	if err != nil {
		return err
	}
	t.release()
	if !created {
		return engine.ErrTopicExists
	}
	return nil
}

// ConfigureTopic implements engine.Topics.
func (e *Engine) ConfigureTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	t, err := e.begin(ctx, id)
	if err != nil {
		return err
	}
	defer t.end()
	if err := checkTopicConfig(config); err != nil {
		return err
	}
	g, err := t.configure(config)
	if err != nil {
		return err
	}
	if err := g.wait(ctx); err != nil {
		return err
	}
	t.announce() // with a higher limit of leases, waiting consumers may be served
	return nil
}

func (t *topic) configure(config engine.TopicConfig) (*commitBatch, error) {
	t.admin.Lock()
	defer t.admin.Unlock()
	parts := *t.parts.Load()
	if int(config.Partitions) < len(parts) {
		return nil, fmt.Errorf("%w: topic with %d partitions cannot shrink to %d", engine.ErrInvalid, len(parts),
			config.Partitions)
	}
	var added []*partition
	for i := len(parts); i < int(config.Partitions); i++ {
		added = append(added, t.newPartition(int32(i)))
	}
	if len(added) > 0 {
		t.mu.RLock()
		for _, s := range t.subs {
			s.mu.Lock()
			for _, p := range added {
				s.addCursorLocked(p)
			}
			s.mu.Unlock()
		}
		t.mu.RUnlock()
	}
	g, err := t.e.commit.lockBatch()
	if err != nil {
		return nil, err
	}
	defer t.e.commit.unlockAndCommit()
	if t.deleted.Load() {
		return nil, engine.ErrNoTopic
	}
	grown := append(append([]*partition(nil), parts...), added...)
	t.parts.Store(&grown)
	t.config.Store(&config)
	g.setLocked(topicKey(ofConfig, t.id), packTopic(topicValue{config: config, nextSub: t.nextSub}))
	g.pinLocked(t)
	t.scheduleTrimLocked(g, time.Now().Add(t.e.opts.TrimDelay).UnixMilli())
	return g, nil
}

// DeleteTopic implements engine.Topics.
func (e *Engine) DeleteTopic(ctx context.Context, id engine.TopicID) error {
	t, err := e.begin(ctx, id)
	if err != nil {
		return err
	}
	defer t.end()
	g, err := t.remove()
	if err != nil {
		return err
	}
	t.tail.send()
	for _, p := range *t.parts.Load() {
		p.tail.send()
		p.watchers.wake()
	}
	return g.wait(ctx)
}

// remove deletes the topic in the current commit batch.
func (t *topic) remove() (*commitBatch, error) {
	t.admin.Lock()
	defer t.admin.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted.Load() {
		return nil, engine.ErrNoTopic
	}
	for _, s := range t.subs {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	g, err := t.e.commit.lockBatch()
	if err != nil {
		return nil, err
	}
	defer t.e.commit.unlockAndCommit()
	t.deleted.Store(true)
	for _, s := range t.subs {
		s.retireLocked(g, engine.ErrNoTopic)
		t.e.clock.disarm(s)
	}
	eras := t.eras()
	t.noteFreedLocked(g, t.stored, eras)
	t.e.totals.add(-t.stored, -len(t.subs))
	for _, era := range eras {
		prefix := eraTopicKey(era, t.id)
		g.deleteRangeLocked(prefix, after(prefix))
	}
	prefix := topicPrefix(t.id)
	g.deleteRangeLocked(prefix, after(prefix))
	if t.trimDue != 0 {
		g.deleteLocked(dueKey(t.trimDue, t.id))
	}
	g.pinLocked(t)
	var ids []uint32
	for _, s := range t.subs {
		ids = append(ids, s.id)
	}
	g.after = append(g.after, func() { t.e.topics.forget(t, ids...) })
	return g, nil
}

// ListTopics implements engine.Topics.
func (e *Engine) ListTopics(ctx context.Context, behind engine.TopicID, limit int) ([]engine.TopicID, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	if limit < 1 || behind == ^engine.TopicID(0) {
		return nil, nil
	}
	iter, err := e.iterate(topicPrefix(behind+1), after([]byte{keyTopic}))
	if err != nil {
		return nil, err
	}
	defer iter.Close()
	var ids []engine.TopicID
	for ok := iter.First(); ok && len(ids) < limit; {
		id := engine.TopicID(binary.BigEndian.Uint64(iter.Key()[1:]))
		if e.topics.listed(id) {
			ids = append(ids, id)
		}
		// Most topics have one key; skip the remaining keys of the others.
		if ok = iter.Next(); ok && binary.BigEndian.Uint64(iter.Key()[1:]) == uint64(id) {
			ok = iter.SeekGE(after(topicPrefix(id)))
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ids, e.iterError(iter)
}

// listed reports whether ListTopics returns a stored topic. A new topic is listed only
// once it is durable.
func (tt *topicTable) listed(id engine.TopicID) bool {
	tt.mu.RLock()
	t := tt.m[id]
	tt.mu.RUnlock()
	if t == nil {
		return true
	}
	select {
	case <-t.ready:
	default:
		return true // it is being loaded, so it was durable before
	}
	return !t.deleted.Load() && (t.createdBy == nil || t.createdBy.durable())
}
