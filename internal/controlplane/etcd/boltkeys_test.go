package etcd

import (
	"bytes"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// TestCheckChange flips every bit of a change in the tree. Those that etcd would not survive are found.
func TestCheckChange(t *testing.T) {
	t.Parallel()
	value, err := proto.Marshal(&mvccpb.KeyValue{
		Key: []byte("a"), Value: []byte("b"), CreateRevision: 3, ModRevision: 7, Version: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	const put = "\x00\x00\x00\x00\x00\x00\x00\x07_\x00\x00\x00\x00\x00\x00\x00\x01"
	for name, tc := range map[string]struct {
		key, value []byte
		mayPass    func(at int) bool // a valid change of something else
	}{
		// The number of a change in its revision and the names of keys have no second copy in the tree.
		"change":   {[]byte(put), value, func(at int) bool { return at >= 9 && at < 17 }},
		"deletion": {[]byte(put + "t"), deleted, func(at int) bool { return at < 17 && at != 8 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if wrong := checkChange(tc.key, tc.value); wrong != "" {
				t.Fatalf("intact change %s, want no problem", wrong)
			}
			for at := range tc.key {
				for bit := range 8 {
					key := bytes.Clone(tc.key)
					key[at] ^= 1 << bit
					negative := bit == 7 && (at == 0 || at == 9)
					if checkChange(key, tc.value) == "" && (negative || !tc.mayPass(at)) {
						t.Errorf("bit %d of byte %d of the key flipped: got no problem, want one", bit, at)
					}
				}
			}
			for size := range tc.value {
				if size == len(tc.value)-len("..b") {
					continue // a valid change without its last field, the value of the key
				}
				if checkChange(tc.key, tc.value[:size]) == "" {
					t.Errorf("value cut after %d bytes: got no problem, want one", size)
				}
			}
		})
	}
	for flags, want := range map[byte]int{0: 0, leafIsBucket: 1} {
		data := append([]byte{flags, 15: 0}, put...)
		data[4], data[8], data[12] = element, changeBytes, byte(len(value))
		found := &tree{inKeys: true}
		found.leaf(2, 0, append(data, value...), []byte(put), 1)
		if len(found.problems) != want {
			t.Errorf("element with flags %d: got problems %v, want %d", flags, found.problems, want)
		}
	}
	for size := range len(put) {
		if checkChange([]byte(put)[:size], value) == "" {
			t.Errorf("key cut after %d bytes: got no problem, want one", size)
		}
	}
}
