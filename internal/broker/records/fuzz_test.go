package records_test

import (
	"bytes"
	"testing"

	"freshet/internal/broker/records"
)

// FuzzCheck checks that every batch that Check accepts can be walked, has the number of records
// that its header states, and keeps its records when Builder encodes them again.
func FuzzCheck(f *testing.F) {
	f.Add(unhex(f, specVector))
	f.Add(build(trickyRecords()))
	for _, c := range codecs {
		f.Add(compressBatch(f, build(trickyRecords()), c.codec, c.compress))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= records.BatchHeaderSize {
			fixChecksum(data) // otherwise almost no input passes the checksum
		}
		head, err := records.Check(data, records.Limits{})
		if err != nil {
			return
		}
		got := collect(t, data)
		if len(got) != int(head.Count) {
			t.Fatalf("got %d records, want %d", len(got), head.Count)
		}
		again := collect(t, build(got))
		if !sameRecords(again, got) {
			t.Fatalf("encoded again:\n%v, want\n%v", again, got)
		}
		second, err := records.Check(bytes.Clone(data), records.Limits{})
		if err != nil || second != head {
			t.Fatalf("checked again: %+v, %v, want %+v", second, err, head)
		}
	})
}
