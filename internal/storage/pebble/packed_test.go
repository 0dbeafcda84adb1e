package pebble

import (
	"encoding/hex"
	"testing"
	"time"

	"freshet/internal/storage/engine"
)

// TestPackedValues compares encoded values with those of earlier versions, which stores contain.
func TestPackedValues(t *testing.T) {
	t.Parallel()
	message := engine.Message{
		Key: "key", Properties: []engine.Property{{Key: "a", Value: "1"}, {Key: "b", Null: true}},
		EventTime:     1700000000000,
		SchemaVersion: 3, Producer: "p", Sequence: 300, HasSequence: true, DeliverAt: -1,
		Dedup: engine.DedupKey{Producer: "other", Sequence: 7},
	}
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"topic": {packTopic(topicValue{nextSub: 300, config: engine.TopicConfig{
			Partitions: 3, RetainAge: time.Hour, RetainBytes: -1, TTL: time.Minute, BacklogBytes: 1 << 40,
			BacklogEvict: true, MaxUnacked: -5, Terminated: true,
		}}), "ac02038080c58bc6d1010180e0ba84bf0380808080804001000901"},
		"head": {
			packHead(headValue{first: 1 << 63, cum: -7, lastPublish: 1700000000000}),
			"808080808080808080010d80a0abfef962",
		},
		"subscription": {packSub(9, engine.SubscriptionConfig{
			Lease: time.Second, MaxDeliveries: 4, DeadLetterTopic: 77,
			Properties: map[string]string{"b": "", "a": "ä"},
		}), "0980a8d6b907044d02016102c3a4016200"},
		"subscription with a filter": {
			packSub(9, engine.SubscriptionConfig{Filter: "size > 1"}), "09000000000873697a65203e2031",
		},
		"snapshot": {packSnapshot(snapshot{id: 1, position: 200, chunks: 3}), "01c80103"},
		"message":  {prepare(&message, nil).fields, "036b6579020161023101620080a0abfef962060170ac0201056f7468657207"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	var read engine.Message
	d := prepare(&message, nil)
	if !decodeMessage(&read, d.flags, d.extra, d.fields) || read.Dedup != message.Dedup || len(read.Properties) != 2 ||
		!read.Properties[1].Null || read.DeliverAt != -1 {
		t.Errorf("decoded message: got %+v, want %+v", read, message)
	}
	for n := range d.fields {
		if decodeMessage(&read, d.flags, d.extra, d.fields[:n]) {
			t.Errorf("%d of %d bytes: decoded without an error", n, len(d.fields))
		}
	}
}
