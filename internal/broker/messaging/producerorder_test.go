package messaging_test

import (
	"sync"
	"testing"

	"freshet/internal/broker/messaging"
)

// TestConcurrentProducersKeepTheirOffsets appends batches of several idempotent producers to one
// partition at the same time. The table of producers in memory and the stored one have the
// offset that the engine assigned to each batch: a duplicate gets it, before a restart and
// after.
func TestConcurrentProducersKeepTheirOffsets(t *testing.T) {
	t.Parallel()
	const producers, batches = 8, 20
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	_, err := c.Kafka.CreateKafkaTopic(ctx, topic("orders"), 1, nil, false)
	c.do(err)
	to, err := c.Kafka.KafkaTopic(ctx, topic("orders"))
	c.do(err)
	var offsets [producers][batches]uint64
	var wg sync.WaitGroup
	for producer := range producers {
		wg.Go(func() {
			for sequence := range batches {
				appended, err := to.Append(ctx, 0, batchOf(uint64(producer), int32(sequence)), messaging.Sender{})
				if err != nil {
					t.Errorf("batch %d of producer %d: got error %v, want none", sequence, producer, err)
					return
				}
				offsets[producer][sequence] = appended.First // most of them are not durable yet
			}
		})
	}
	wg.Wait()
	seen := make(map[uint64]bool)
	for producer := range producers {
		for sequence, offset := range offsets[producer] {
			if seen[offset] || sequence > 0 && offset <= offsets[producer][sequence-1] {
				t.Errorf("batch %d of producer %d: got offset %d, want one that is new and larger than that before",
					sequence, producer, offset)
			}
			seen[offset] = true
		}
	}
	for name, c := range map[string]*cluster{"in memory": c, "stored": openOver(t, c.engine, messaging.Options{})} {
		to, err := c.Kafka.KafkaTopic(ctx, topic("orders"))
		c.do(err)
		for producer := range producers {
			for sequence := batches - 5; sequence < batches; sequence++ { // the last five are recognized
				again, err := to.Append(ctx, 0, batchOf(uint64(producer), int32(sequence)), messaging.Sender{})
				c.do(err)
				if want := offsets[producer][sequence]; again.First != want {
					t.Errorf("%s: duplicate of batch %d of producer %d: got offset %d, want %d", name, sequence,
						producer, again.First, want)
				}
			}
		}
	}
}
