package pebble

import (
	"context"

	"freshet/internal/storage/engine"
)

// attributeWrite is an attribute that a commit batch writes once, however often it changes.
type attributeWrite struct {
	key   []byte
	value []byte // nil deletes
}

func attributeKey(id engine.TopicID, part int32, key []byte) []byte {
	return append(partitionKey(ofAttribute, id, part), key...)
}

// setAttributeLocked adds an attribute to the commit batch. The caller holds committer.mu.
func (g *commitBatch) setAttributeLocked(key, value []byte) {
	if value != nil {
		value = append([]byte{}, value...)
	}
	if i, ok := g.attributeIndex[string(key)]; ok {
		g.attributes[i].value = value
		return
	}
	if g.attributeIndex == nil {
		g.attributeIndex = make(map[string]int)
	}
	g.attributeIndex[string(key)] = len(g.attributes)
	g.attributes = append(g.attributes, attributeWrite{key, value})
	g.bytes += len(key) + len(value) + 16
}

// emitAttributes writes the attributes into the Pebble batch.
func (g *commitBatch) emitAttributes() {
	for i := range g.attributes {
		s := &g.attributes[i]
		if s.value == nil {
			_ = g.batch.Delete(s.key, nil)
			continue
		}
		_ = g.batch.Set(s.key, addChecksum(s.key, s.value), nil)
	}
}

// Attributes implements engine.Batches.
func (e *Engine) Attributes(ctx context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Attribute) error,
) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	t, err := e.topics.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer t.release()
	p, err := t.partition(partition)
	if err != nil {
		return err
	}
	// Wait for the writes that are not durable yet.
	e.commit.mu.Lock()
	g := p.lastCommit
	e.commit.mu.Unlock()
	if g != nil {
		if err := g.wait(ctx); err != nil {
			return err
		}
	}
	head := len(attributeKey(id, partition, nil))
	return e.scan(attributeKey(id, partition, prefix), func(key, body []byte) error {
		return visit(engine.Attribute{Key: key[head:], Value: body})
	})
}
