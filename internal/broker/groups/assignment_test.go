package groups_test

import (
	"fmt"
	"testing"

	"freshet/internal/broker/groups"
)

// FuzzConsumerAssignment checks that decoding an assignment, which a client wrote, returns no more
// data than the input contains.
func FuzzConsumerAssignment(f *testing.F) {
	good := "\x00\x01\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"
	if got, ok := groups.ConsumerAssignment([]byte(good)); !ok || fmt.Sprint(got) != "map[orders:[1 0]]" {
		f.Errorf("got %v, %t; want both partitions of orders", got, ok)
	}
	for _, bad := range []string{
		"", "\x00", good[:20], "\x00\x01\x7f\xff\xff\xff",
		"\x00\x01\x00\x00\x00\x01\x00\x01x\x7f\xff\xff\xff",
	} {
		if got, ok := groups.ConsumerAssignment([]byte(bad)); ok {
			f.Errorf("%q: got %v, want an error", bad, got)
		}
		f.Add([]byte(bad))
	}
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, data []byte) {
		topics, _ := groups.ConsumerAssignment(data)
		n := 0
		for name, partitions := range topics {
			n += len(name) + 4*len(partitions)
		}
		if n > len(data) {
			t.Errorf("got %d bytes of topics out of %d", n, len(data))
		}
	})
}
