package messaging_test

import (
	"slices"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// TestFormat1Messages appends messages in the form of store format 1, which the engine still writes
// byte for byte.
func TestFormat1Messages(t *testing.T) {
	t.Parallel()
	hidden := func(key, value string) messaging.Property { return messaging.Property{Key: "\x00" + key, Value: value} }
	plain := messaging.Property{Key: "a", Value: "b"}
	tests := map[string]struct {
		stored engine.Message
		retry  messaging.Message // of the same message; not sent when empty
		want   messaging.Message
	}{
		"idempotency key": {
			stored: engine.Message{
				Producer: "\x00key:order-1", HasSequence: true,
				Properties: []messaging.Property{plain, hidden("producer", "p"), hidden("sequence", "5")},
				Dedup:      engine.DedupKey{Producer: "\x00key:order-1"},
			},
			retry: messaging.Message{IdempotencyKey: "order-1"},
			want: messaging.Message{
				Producer: "p", Sequence: 5, HasSequence: true,
				Properties: []messaging.Property{plain},
			},
		},
		"idempotency key alone": {
			stored: engine.Message{
				Producer: "\x00key:order-2", HasSequence: true,
				Dedup: engine.DedupKey{Producer: "\x00key:order-2"},
			},
			retry: messaging.Message{IdempotencyKey: "order-2"},
		},
		"number that is not deduplicated": {
			stored: engine.Message{
				Sequence: 7, HasSequence: true,
				Properties: []messaging.Property{hidden("producer", "p")},
			},
			want: messaging.Message{Producer: "p", Sequence: 7, HasSequence: true},
		},
		"dead letter": {
			stored: engine.Message{
				Producer: "\x00key:order-3", HasSequence: true,
				Properties: []messaging.Property{
					plain, hidden("producer", "p"),
					{Key: engine.OriginProperty, Value: "1:2:0"},
				},
			},
			want: messaging.Message{
				Producer:   "p",
				Properties: []messaging.Property{plain, {Key: engine.OriginProperty, Value: "1:2:-1:0"}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, messaging.Options{})
			name := c.create("orders", 0)
			info, err := c.Catalogue.Topic(t.Context(), name)
			c.do(err)
			tc.stored.SchemaVersion = messaging.NoSchema
			if _, err = c.engine.Append(t.Context(), engine.TopicID(info.ID), 0,
				[]engine.Message{tc.stored}); err != nil {
				t.Fatal(err)
			}
			if tc.retry.IdempotencyKey != "" {
				tc.retry.SchemaVersion = messaging.NoSchema
				if got := c.produce(name, &tc.retry); !got.Duplicate || got.ID.Entry != 0 {
					t.Errorf("retry: got %+v, want a duplicate of entry 0", got)
				}
			}
			c.subscribe(name, "s")
			all := c.receive(name, "s", 10)
			if len(all) != 1 {
				t.Fatalf("got %d messages, want 1", len(all))
			}
			got, want := all[0].Message, tc.want
			if got.Producer != want.Producer || got.Sequence != want.Sequence || got.HasSequence != want.HasSequence ||
				!slices.Equal(got.Properties, want.Properties) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
