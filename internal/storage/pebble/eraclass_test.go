package pebble

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

func TestErasOfBothClassesAscend(t *testing.T) {
	for newest := range uint32(100) {
		for class := range eraClass(eraClasses) {
			next := nextEra(newest, class)
			if next <= newest || next > newest+erasPerClass+1 || classOf(next) != class {
				t.Errorf("era of class %d after %d: got %d", class, newest, next)
			}
		}
		if newest == 0 {
			continue
		}
		var c eraCounter
		c.resume(newest)
		for class := range eraClass(eraClasses) {
			if era := c.current[class]; classOf(era) != class || era == 0 || era > max(newest, erasPerClass) {
				t.Errorf("class %d of a store with the eras up to %d: got era %d", class, newest, c.current[class])
			}
		}
	}
}

// appendBatch appends a batch in the format of a producer and waits for it.
func appendBatch(t *testing.T, e *Engine, id engine.TopicID, body []byte) {
	t.Helper()
	ctx := context.Background()
	batch := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: 1, Body: body}
	pending, err := e.AppendBatch(ctx, id, 0, batch, nil)
	if err == nil {
		err = pending.Wait(ctx)
	}
	must(t, err)
}

// TestLargeBatchesAreNotCompressed writes compressible messages, small batches and large batches,
// and compares the size of their tables, before and after a compaction.
func TestLargeBatchesAreNotCompressed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		append func(e *Engine, body []byte)
		size   int
		packed bool
	}{
		{"large batches", func(e *Engine, body []byte) { appendBatch(t, e, 1, body) }, 64 << 10, false},
		{"small batches", func(e *Engine, body []byte) { appendBatch(t, e, 1, body) }, 2 << 10, true},
		{"messages", func(e *Engine, body []byte) {
			_, err := e.Append(context.Background(), 1, 0, []engine.Message{{Payload: body}})
			must(t, err)
		}, 64 << 10, true},
		{"messages together", func(e *Engine, body []byte) {
			msgs := make([]engine.Message, 16)
			for i := range msgs {
				msgs[i].Payload = body[i*len(body)/16 : (i+1)*len(body)/16]
			}
			_, err := e.Append(context.Background(), 1, 0, msgs)
			must(t, err)
		}, 64 << 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, err := Open("store", Options{FS: vfs.NewMem(), MemTableBytes: 1 << 20, EraBytes: 1 << 20})
			must(t, err)
			defer e.Close()
			makeTopics(t, e, 1, 1, false)
			written := 0
			for written < 4<<20 {
				body := bytes.Repeat(fmt.Appendf(nil, `{"order":%d,"city":"Lisbon"}`, written), c.size/20)[:c.size]
				c.append(e, body)
				written += len(body)
			}
			must(t, e.db.Flush())
			for _, when := range []string{"flush", "compaction"} {
				size := tableBytes(t, e)
				if packed := size < uint64(written)/2; packed != c.packed {
					t.Errorf("after a %s: got tables of %d bytes for %d, want compressed = %t",
						when, size, written, c.packed)
				}
				must(t, e.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false))
			}
		})
	}
}

func tableBytes(t *testing.T, e *Engine) (sum uint64) {
	t.Helper()
	levels, err := e.db.SSTables()
	must(t, err)
	for _, level := range levels {
		for _, table := range level {
			sum += table.Size
		}
	}
	return sum
}

// TestBatchesOfAllSizesKeepTheirOrder appends messages and batches of random sizes to several
// partitions, with many eras of both classes, trims and opens the store again, and reads everything back.
func TestBatchesOfAllSizesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const topics = 6
	ctx, fs := context.Background(), vfs.NewMem()
	opts := Options{FS: fs, MemTableBytes: 256 << 10, EraBytes: 32 << 10}
	e, err := Open("store", opts)
	must(t, err)
	defer func() { must(t, e.Close()) }()
	makeTopics(t, e, 1, topics, true)
	rng := rand.New(rand.NewPCG(7, 7))
	var want [topics + 1][][]byte
	var first [topics + 1]int
	largest := uint32(0)
	for step := range 1500 {
		id := engine.TopicID(1 + rng.IntN(topics))
		size := 1 + rng.IntN([]int{100, 2 << 10, 20 << 10}[rng.IntN(3)])
		body := bytes.Repeat(fmt.Appendf(nil, "%d of %d,", step, id), size/8+1)
		if rng.IntN(3) == 0 {
			_, err := e.Append(ctx, id, 0, []engine.Message{{Payload: body}})
			must(t, err)
		} else {
			appendBatch(t, e, id, body)
		}
		want[id] = append(want[id], body)
		switch rng.IntN(200) {
		case 0:
			must(t, e.Close())
			e, err = Open("store", opts)
			must(t, err)
			if e.eras.stored < largest {
				t.Fatalf("store opened again: got era %d, want at least %d", e.eras.stored, largest)
			}
		case 1:
			cut := first[id] + rng.IntN(len(want[id])-first[id])
			_, err := e.Trim(ctx, id, 0, uint64(cut))
			must(t, err)
			first[id] = cut
		case 2:
			must(t, e.db.Flush())
		}
		largest = e.eras.stored
	}
	if largest < 4*erasPerClass {
		t.Errorf("got %d eras, want several of each class", largest)
	}
	for id := engine.TopicID(1); id <= topics; id++ {
		readAll(t, e, id, want[id], first[id])
	}
}

// readAll compares the values of a partition from an entry on, and the order of its eras.
func readAll(t *testing.T, e *Engine, id engine.TopicID, want [][]byte, first int) {
	t.Helper()
	next := first
	_, err := e.ReadBatches(context.Background(), id, 0, uint64(first), func(s *engine.StoredValue) (bool, error) {
		body := s.Run.Body
		if s.Run.Count == 0 {
			body = s.Record.Payload
		}
		if next >= len(want) || s.First != uint64(next) || !bytes.Equal(body, want[next]) {
			return false, fmt.Errorf("value %d of topic %d: got entry %d with %.20q", next, id, s.First, body)
		}
		next++
		return true, nil
	})
	must(t, err)
	if next != len(want) {
		t.Errorf("topic %d: got the entries %d to %d, want to %d", id, first, next, len(want))
	}
	p, err := e.beginPartition(context.Background(), id, 0)
	must(t, err)
	defer p.topic.end()
	ascends := func(a, b eraStart) int { return cmp.Compare(a.era, b.era) }
	if eras := *p.eras.Load(); !slices.IsSortedFunc(eras, ascends) {
		t.Errorf("topic %d: got the eras %v, want them ascending", id, eras)
	}
}
