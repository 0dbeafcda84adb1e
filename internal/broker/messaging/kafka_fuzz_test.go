package messaging

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

// FuzzProducerState checks that the stored state of a producer survives encoding, and that decoding
// rejects anything else.
func FuzzProducerState(f *testing.F) {
	side := encodeProducer(7, &producerState{epoch: 3})
	f.Add(side.Key, side.Value)
	f.Add([]byte("x"), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		id, state, err := decodeProducer(engine.Attribute{Key: key, Value: value})
		if err != nil {
			return
		}
		again := encodeProducer(id, state)
		if back, second, err := decodeProducer(again); err != nil || back != id || !reflect.DeepEqual(second, state) {
			t.Errorf("got %d %+v, %v; want %d %+v", back, second, err, id, state)
		}
	})
}

// FuzzSplit checks that HTTP readers get the same records as Kafka readers.
func FuzzSplit(f *testing.F) {
	builder := records.NewBuilder(nil, 0)
	builder.Add(&records.Record{
		Key: []byte("k"), Value: []byte("v"),
		Headers: []records.Header{{Key: []byte("\x00h"), Value: nil}}, Time: 5,
	})
	builder.Add(&records.Record{Delta: 1, Value: nil})
	f.Add(builder.Finish())
	f.Fuzz(func(t *testing.T, batch []byte) {
		if _, err := records.Check(batch, records.Limits{}); err != nil {
			return
		}
		var want []*records.Record
		if err := records.Walk(batch, nil, func(_ int32, r *records.Record) error {
			copied := *r
			copied.Key, copied.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
			want = append(want, &copied)
			return nil
		}); err != nil {
			t.Fatalf("walking an accepted batch: %v", err)
		}
		n := 0
		reader, err := Splitter{}.Open(engine.KafkaRecordBatch, batch)
		if err != nil {
			t.Fatalf("opening an accepted batch: %v", err)
		}
		defer reader.Close()
		for {
			i, m, err := reader.Next(0, nil)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || n == len(want) {
				t.Fatalf("after %d records: got %+v, %v; want %d records", n, m, err, len(want))
			}
			r := want[n]
			if i != r.Delta || m.Key != string(r.Key) || !bytes.Equal(m.Payload, r.Value) ||
				m.NullPayload != (r.Value == nil) || len(m.Properties) != len(r.Headers) {
				t.Errorf("record %d: got %+v, want %+v", i, m, r)
			}
			n++
		}
		if n != len(want) {
			t.Errorf("got %d records, want %d", n, len(want))
		}
	})
}
