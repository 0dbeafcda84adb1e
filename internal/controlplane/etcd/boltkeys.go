package etcd

import (
	"encoding/binary"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// The bucket of keys has one element for each change of a key (numbers are sizes in bytes):
//
//	key:    revision (8) | '_' | number of the change in the revision (8) | 't' if it deletes the key
//	value:  KeyValue, with the revision unless it deletes the key
//
// etcd ends the process when it starts with an element that it cannot read.
const (
	changeBytes  = 17
	changeMark   = '_'
	deletionMark = 't'
)

// checkChange returns what is wrong with an element of the bucket of keys; "" if it is intact as far as can be
// determined.
func checkChange(key, value []byte) string {
	deleted := len(key) == changeBytes+1
	if len(key) != changeBytes && !deleted || key[8] != changeMark || deleted && key[changeBytes] != deletionMark {
		return "has no valid revision"
	}
	revision, number := int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(key[9:]))
	if revision < 1 || number < 0 {
		return "has no valid revision"
	}
	var kv mvccpb.KeyValue
	if err := proto.Unmarshal(value, &kv); err != nil || len(kv.GetKey()) == 0 {
		return "has no valid value"
	}
	if !deleted && (kv.GetModRevision() != revision || kv.GetCreateRevision() > revision || kv.GetVersion() < 1) {
		return "differs from its value in the revision"
	}
	return ""
}
