package enginetest

import (
	"fmt"
	"time"

	"freshet/internal/storage/engine"
)

// trim deletes the messages before an entry of partition 0 and checks the first entry that is
// left.
func (v *env) trim(id engine.TopicID, before, want uint64) {
	v.Helper()
	if first, err := v.Trim(v.ctx, id, 0, before); err != nil || first != want {
		v.Fatalf("trim before %d: got first entry %d and error %v, want %d", before, first, err, want)
	}
	if got := v.first(id); got != want {
		v.Fatalf("after trim before %d: got first entry %d, want %d", before, got, want)
	}
}

var trimTests = []testCase{
	{"messages before an entry are deleted, consumed or not", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.sub(1, "s")
		ids := v.put(1, numbered("m", 0, 10)...)
		v.putPart(1, 1, "other")
		v.ack(1, "s", ids[2], ids[7])
		v.trim(1, 5, 5)
		for range 2 {
			v.same(v.read(1, 0), numbered("m", 5, 10))
			v.same(v.read(1, 1), []string{"other"})
			if s := v.subStats(1, "s"); s.Backlog != 5 || s.Cursors[0].Floor != 5 || s.Cursors[0].Acked != 1 ||
				s.Cursors[1].Floor != 0 {
				v.Fatalf("got %+v, want a backlog of 4 from entry 5 on and the other partition's message", s)
			}
			v.crash()
		}
		v.subAt(1, "late", engine.Position{Kind: engine.Earliest})
		if n := len(v.get(1, "late", 100)); n != 6 {
			v.Fatalf("new subscription: got %d messages, want 6", n)
		}
		if n := len(v.get(1, "s", 100)); n != 5 {
			v.Fatalf("old subscription: got %d messages, want 5", n)
		}
	}},
	{"trimming again, or less, changes nothing", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, numbered("m", 0, 6)...)
		v.trim(1, 4, 4)
		bytes := v.stats(1).Partitions[0].Bytes
		v.trim(1, 4, 4)
		v.trim(1, 1, 4)
		v.trim(1, 0, 4)
		if got := v.stats(1).Partitions[0].Bytes; got != bytes {
			v.Fatalf("got %d bytes, want %d as before", got, bytes)
		}
		v.same(v.read(1, 0), numbered("m", 4, 6))
	}},
	{"trimming to the end deletes everything, and entries continue", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		v.putBatch(1, plainBatch("b", "c"))
		v.trim(1, 3, 3)
		if s := v.stats(1).Partitions[0]; s.Bytes != 0 || s.Next != 3 {
			v.Fatalf("got %+v, want no bytes and next entry 3", s)
		}
		v.crash()
		v.same(v.read(1, 0), []string{})
		v.expect(1, "s")
		if id := v.put(1, "next")[0]; id.Entry != 3 {
			v.Fatalf("next message: got entry %d, want 3", id.Entry)
		}
		v.expect(1, "s", "next")
	}},
	{"an entry after the end is rejected", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, "a", "b")
		for _, before := range []uint64{3, ^uint64(0)} {
			_, err := v.Trim(v.ctx, 1, 0, before)
			v.want(err, engine.ErrNoMessage)
		}
		v.same(v.read(1, 0), []string{"a", "b"})
		_, err := v.Trim(v.ctx, 1, 1, 0)
		v.want(err, engine.ErrNoPartition)
		_, err = v.Trim(v.ctx, 1, -1, 0)
		v.want(err, engine.ErrNoPartition)
		_, err = v.Trim(v.ctx, 2, 0, 0)
		v.want(err, engine.ErrNoTopic)
	}},
	{"a batch that contains the entry stays unchanged", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.putBatch(1, plainBatch("a", "b", "c", "d"), writeOf("k", "v"))
		v.putBatch(1, plainBatch("e", "f"))
		v.trim(1, 2, 2)
		for range 2 {
			v.same(v.stored(1, 2), []string{"[0: 1 a,1 b,1 c,1 d]", "[4: 1 e,1 f]"})
			v.same(v.read(1, 0), []string{"c", "d", "e", "f"})
			if got := v.attribute(1, "k"); got != "v" {
				v.Fatalf("attribute: got %q, want it unchanged", got)
			}
			v.crash()
		}
		v.expect(1, "s", "c", "d", "e", "f")
		v.trim(1, 4, 4)
		v.same(v.stored(1, 0), []string{"[4: 1 e,1 f]"})
		found, err := v.FindByTime(v.ctx, 1, 0, 0)
		if err != nil || found.Entry != 4 {
			v.Fatalf("first message by time: got %+v, %v; want entry 4", found, err)
		}
	}},
	{"leased and delayed messages are deleted too", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		ids := v.put(1, "a", "b", "c")
		v.putMsg(1, 0, engine.Message{
			Payload: []byte("later"), DeliverAt: time.Now().Add(20 * v.tick).UnixMilli(),
			SchemaVersion: engine.NoSchema,
		})
		v.put(1, "d")
		v.expect(1, "s", "a", "b", "c", "d")
		v.trim(1, 4, 4)
		if s := v.subStats(1, "s"); s.Backlog != 1 || s.Leased != 1 || s.Delayed != 0 {
			v.Fatalf("got %+v, want one message, leased", s)
		}
		v.want(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: ids[1], Action: engine.Nack}}), engine.ErrLeaseEnded)
		v.ack(1, "s", ids[0])
		v.sleep(40)
		v.expect(1, "s", "d")
	}},
	{"a deduplicating topic forgets only trimmed messages", func(v *env) {
		v.topic(1, deduping(1))
		for seq := range uint64(4) {
			v.putMsg(1, 0, sequenced("p", seq, fmt.Sprint(seq)))
		}
		v.trim(1, 2, 2)
		if out := v.putMsg(1, 0, sequenced("p", 3, "3")); !out.Duplicate || out.ID.Entry != 3 {
			v.Fatalf("message that is not trimmed: got %+v, want a duplicate of entry 3", out)
		}
		if out := v.putMsg(1, 0, sequenced("p", 1, "1")); out.Duplicate || out.ID.Entry != 4 {
			v.Fatalf("message that was trimmed: got %+v, want it stored again as entry 4", out)
		}
	}},
}
