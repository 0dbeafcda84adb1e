package pebble

import (
	"context"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/cleanclose"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// format1 are records as format 1 wrote them, at entry 0 of partition 0 of topic 7 in era 1,
// with their deduplication key in the store.
var format1 = map[string]struct {
	value, index string
	want         engine.Message
}{
	"by producer and sequence": {
		value: "4bc8708f300068e5cf8b0100001d000000000000000170ac0273656e74",
		index: "740000000000000007720000000170000000000000012c",
		want: engine.Message{
			Payload: []byte("sent"), SchemaVersion: engine.NoSchema,
			Producer: "p", Sequence: 300, HasSequence: true,
			Dedup: engine.DedupKey{Producer: "p", Sequence: 300},
		},
	},
	"by idempotency key": {
		value: "8ec17d8d330068e5cf8b0100004600000000000000016b0301610162090070726f6475636572" +
			"0170090073657175656e636501350c006b65793a6f726465722d310070616964",
		index: "740000000000000007720000000c006b65793a6f726465722d310000000000000000",
		want: engine.Message{
			Payload: []byte("paid"), Key: "k", SchemaVersion: engine.NoSchema,
			Properties: []engine.Property{
				{Key: "a", Value: "b"},
				{Key: "\x00producer", Value: "p"},
				{Key: "\x00sequence", Value: "5"},
			},
			Producer: "\x00key:order-1", HasSequence: true,
			Dedup: engine.DedupKey{Producer: "\x00key:order-1"},
		},
	},
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFormat1IsReadAndDeduplicated puts records of format 1 into a store of that format: they
// can be read, a duplicate is detected, and the store has the current format afterwards.
func TestFormat1IsReadAndDeduplicated(t *testing.T) {
	t.Parallel()
	for name, old := range format1 {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			fs := vfs.NewMem()
			e, err := Open("store", Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			config := keepAll
			config.Deduplicate = true
			if err := e.CreateTopic(ctx, 7, config); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Append(ctx, 7, 0,
				[]engine.Message{{Payload: []byte("replaced by the record")}}); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			plantFormat1(t, fs, unhex(t, old.value), unhex(t, old.index))

			if e, err = Open("store", Options{FS: fs}); err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			records, err := e.Read(ctx, 7, engine.ReadRequest{Max: 10})
			if err != nil || len(records) != 1 || !reflect.DeepEqual(records[0].Message, old.want) {
				t.Fatalf("read: got %+v, %v; want %+v", records, err, old.want)
			}
			again, err := e.Append(ctx, 7, 0, []engine.Message{{Payload: []byte("again"), Dedup: old.want.Dedup}})
			if want := (engine.MessageID{Topic: 7}); err != nil || !again[0].Duplicate || again[0].ID != want {
				t.Errorf("append again: got %+v, %v; want a duplicate of %v", again, err, want)
			}
			body, err := e.get([]byte{keyFormat})
			if u := unpack(body); err != nil || u.Uvarint() != formatVersion {
				t.Errorf("format: got %x, %v; want %d", body, err, formatVersion)
			}
		})
	}
}

// plantFormat1 sets the store's format to 1 and adds a record and its deduplication key.
func plantFormat1(t *testing.T, fs vfs.FS, value, index []byte) {
	t.Helper()
	db, err := cdb.Open("store", &cdb.Options{FS: fs, FormatMajorVersion: cdb.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	var format, at wire.Writer
	format.Uvarint(1)
	at.Uvarint(0) // partition
	at.Uvarint(0) // entry
	err = errors.Join(
		db.Set([]byte{keyFormat}, addChecksum([]byte{keyFormat}, format), cdb.Sync),
		db.Set(messageKey(1, 7, 0, 0), value, cdb.Sync),
		db.Set(index, addChecksum(index, at), cdb.Sync),
		db.Close(),
		fs.Remove("store/"+cleanclose.Name),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnknownFlagsOfARecordAreNamed reads a record with a flag that this version does not have.
func TestUnknownFlagsOfARecordAreNamed(t *testing.T) {
	t.Parallel()
	key, value := messageKey(1, 7, 0, 0), unhex(t, format1["by producer and sequence"].value)
	if _, err := verify(key, value); err != nil {
		t.Fatal(err)
	}
	value[extraOffset] = 1 << 5
	if _, err := verify(key, value); !errors.Is(err, engine.ErrCorrupt) || !strings.Contains(err.Error(),
		"unknown flags 0x20") {
		t.Errorf("unknown flag: got error %v, want one that names the flag", err)
	}
	if _, err := verify(key, value[:recordHeaderLen-1]); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("short record: got error %v, want one that says so", err)
	}
}
