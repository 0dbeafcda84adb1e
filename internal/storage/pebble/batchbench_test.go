package pebble

import (
	"context"
	"fmt"
	"testing"

	"freshet/internal/storage/engine"
)

// BenchmarkAppendBatch appends batches of 10 messages with and without an attribute, as
// producers of the Kafka protocol do; each waits for the last of 16.
func BenchmarkAppendBatch(b *testing.B) {
	for _, attributes := range []int{0, 1} {
		for _, writers := range []int{1, 16} {
			b.Run(fmt.Sprintf("attributes=%d/writers=%d", attributes, writers), func(b *testing.B) {
				e := openBench(b)
				makeTopics(b, e, 1, 1, false)
				ctx := context.Background()
				batch := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: 10, Body: payload(1024)}
				b.ReportAllocs()
				work(b, writers, func(w, n int) {
					pending, err := e.AppendBatch(ctx, 1, 0, batch, benchAttributes(w, attributes))
					if err == nil && n%16 == 0 {
						err = pending.Wait(ctx)
					}
					if err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}

// benchAttributes returns the state of an idempotent producer.
func benchAttributes(producer, n int) []engine.AttributeWrite {
	if n == 0 {
		return nil
	}
	return []engine.AttributeWrite{{
		Attribute:   engine.Attribute{Key: fmt.Appendf(nil, "p%8d", producer), Value: make([]byte, 82)},
		AppendEntry: true,
	}}
}

// BenchmarkRead reads 100 messages of a topic per operation: messages that were appended one by
// one, or together, and whole batches.
func BenchmarkRead(b *testing.B) {
	ctx := context.Background()
	read := func(e *Engine) (int, error) {
		got, err := e.Read(ctx, 1, engine.ReadRequest{Max: 100, From: 50})
		return len(got), err
	}
	for _, c := range []struct {
		name string
		put  func(b *testing.B, e *Engine)
		get  func(e *Engine) (int, error)
	}{
		{"single", func(b *testing.B, e *Engine) {
			for range 200 {
				fill(b, e, 1, 1, 200)
			}
		}, read},
		{"together", func(b *testing.B, e *Engine) { fill(b, e, 1, 200, 200) }, read},
		{"batches", func(b *testing.B, e *Engine) {
			batch := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: 10, Body: payload(2000)}
			for range 20 {
				pending, err := e.AppendBatch(ctx, 1, 0, batch, nil)
				if err == nil {
					err = pending.Wait(ctx)
				}
				must(b, err)
			}
		}, func(e *Engine) (n int, err error) {
			_, err = e.ReadBatches(ctx, 1, 0, 50, func(s *engine.StoredValue) (bool, error) {
				n += int(s.Run.Count)
				return n < 100, nil
			})
			return n, err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := openBench(b)
			makeTopics(b, e, 1, 1, false)
			c.put(b, e)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := c.get(e); err != nil || n != 100 {
					b.Fatalf("got %d messages, %v; want 100", n, err)
				}
			}
		})
	}
}
