package records_test

import (
	"testing"

	"freshet/internal/broker/records"
)

// BenchmarkCheck measures the validation of a produced batch of 1000 small records.
func BenchmarkCheck(b *testing.B) {
	builder := records.NewBuilder(nil, 0)
	for i := range int32(1000) {
		builder.Add(&records.Record{Delta: i, Time: 5, Key: []byte("key"), Value: make([]byte, 100)})
	}
	batch := builder.Finish()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := records.Check(batch, records.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuild measures the encoding of a batch of 1000 small records.
func BenchmarkBuild(b *testing.B) {
	value := make([]byte, 100)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		builder := records.NewBuilder(buf[:0], 0)
		for i := range int32(1000) {
			builder.Add(&records.Record{Delta: i, Time: 5, Key: []byte("key"), Value: value})
		}
		buf = builder.Finish()
	}
}
