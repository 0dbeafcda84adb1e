package records_test

import (
	"bytes"
	"testing"

	"freshet/internal/broker/records"
)

// FuzzCheck: whatever arrives, a batch that is let pass can be walked, gives as
// many records as it says, and says the same when it is built anew.
func FuzzCheck(f *testing.F) {
	f.Add(unhex(f, vector))
	f.Add(build(some()))
	for _, c := range codecs {
		f.Add(pack(f, build(some()), c.codec, c.compress))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= records.HeadSize {
			seal(data) // else nearly nothing gets further than the checksum
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
		if !same(again, got) {
			t.Fatalf("built anew:\n%v, want\n%v", again, got)
		}
		second, err := records.Check(bytes.Clone(data), records.Limits{})
		if err != nil || second != head {
			t.Fatalf("checked again: %+v, %v, want %+v", second, err, head)
		}
	})
}
