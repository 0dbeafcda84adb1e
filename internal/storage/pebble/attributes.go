package pebble

import (
	"context"
	"encoding/binary"
	"fmt"

	"freshet/internal/storage/engine"
)

// attributeWrite is an attribute that a commit batch writes once, however often it changes.
type attributeWrite struct {
	key      []byte
	value    []byte // nil deletes
	hasEntry bool   // the value ends with the first entry of a batch
}

const entryLen = 8

// prepareAttributes encodes attributes except for the entry that some of them end with.
func (p *partition) prepareAttributes(attributes []engine.AttributeWrite) ([]attributeWrite, error) {
	if len(attributes) == 0 {
		return nil, nil
	}
	writes := make([]attributeWrite, len(attributes))
	prefix := attributeKey(p.topic.id, p.index, nil)
	for i := range attributes {
		a := &attributes[i]
		size := len(a.Value)
		if a.AppendEntry {
			size += entryLen
		}
		if len(a.Key) > engine.MaxAttributeBytes || size > engine.MaxAttributeBytes {
			return nil, fmt.Errorf("%w: attribute has a key of %d and a value of %d bytes, at most %d are allowed",
				engine.ErrTooLarge, len(a.Key), size, engine.MaxAttributeBytes)
		}
		// The key and the value share one allocation.
		buffer := append(append(make([]byte, 0, len(prefix)+len(a.Key)+size), prefix...), a.Key...)
		writes[i] = attributeWrite{key: buffer[:len(buffer):len(buffer)], hasEntry: a.AppendEntry}
		if a.Value != nil || a.AppendEntry {
			writes[i].value = buffer[len(buffer) : len(buffer)+size]
			copy(writes[i].value, a.Value)
		}
	}
	return writes, nil
}

func attributeKey(id engine.TopicID, part int32, key []byte) []byte {
	return append(partitionKey(ofAttribute, id, part), key...)
}

// setAttributeLocked adds an attribute of a batch to the commit batch; first is the batch's
// first entry. The caller holds committer.mu.
func (g *commitBatch) setAttributeLocked(w *attributeWrite, first uint64) {
	if w.hasEntry {
		binary.BigEndian.PutUint64(w.value[len(w.value)-entryLen:], first)
	}
	if i, ok := g.attributeIndex[string(w.key)]; ok {
		g.attributes[i].value = w.value
		return
	}
	if g.attributeIndex == nil {
		g.attributeIndex = make(map[string]int)
	}
	g.attributeIndex[string(w.key)] = len(g.attributes)
	g.attributes = append(g.attributes, *w)
	g.bytes += len(w.key) + len(w.value) + 16
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
	p, err := e.beginPartition(ctx, id, partition)
	if err != nil {
		return err
	}
	defer p.topic.end()
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
