package pebble

import (
	"context"

	"freshet/internal/storage/engine"
)

// sideWrite is an attribute that a commit batch writes once, however often it changes.
type sideWrite struct {
	key   []byte
	value []byte // nil deletes
}

func sideKey(id engine.TopicID, part int32, key []byte) []byte {
	return append(partitionKey(ofSide, id, part), key...)
}

// setSide adds an attribute to the commit batch. The caller holds committer.mu.
func (g *group) setSide(key, value []byte) {
	if value != nil {
		value = append([]byte{}, value...)
	}
	if i, ok := g.sideAt[string(key)]; ok {
		g.sides[i].value = value
		return
	}
	if g.sideAt == nil {
		g.sideAt = make(map[string]int)
	}
	g.sideAt[string(key)] = len(g.sides)
	g.sides = append(g.sides, sideWrite{key, value})
	g.bytes += len(key) + len(value) + 16
}

// emitSides writes the attributes into the Pebble batch.
func (g *group) emitSides() {
	for i := range g.sides {
		s := &g.sides[i]
		if s.value == nil {
			_ = g.batch.Delete(s.key, nil)
			continue
		}
		_ = g.batch.Set(s.key, addChecksum(s.key, s.value), nil)
	}
}

// Sides implements engine.Runs.
func (e *Engine) Sides(ctx context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Side) error,
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
	g := p.group
	e.commit.mu.Unlock()
	if g != nil {
		if err := g.wait(ctx); err != nil {
			return err
		}
	}
	head := len(sideKey(id, partition, nil))
	return e.scan(sideKey(id, partition, prefix), func(key, body []byte) error {
		return visit(engine.Side{Key: key[head:], Value: body})
	})
}
