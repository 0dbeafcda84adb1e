package enginetest

import (
	"strings"
	"time"

	"freshet/internal/storage/engine"
)

// first returns the first entry of partition 0 that is not trimmed.
func (v *env) first(id engine.TopicID) uint64 {
	v.Helper()
	return v.stats(id).Partitions[0].First
}

func (v *env) trimmedTo(id engine.TopicID, entry uint64) {
	v.Helper()
	v.eventually("trim", func() bool { return v.first(id) == entry })
	v.sleep(10)
	if got := v.first(id); got != entry {
		v.Fatalf("first entry: got %d, want %d", got, entry)
	}
}

var retentionTests = []testCase{
	{"without retention settled messages are trimmed and others stay", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1})
		v.sub(1, "fast")
		v.sub(1, "slow")
		ids := v.put(1, numbered("m", 0, 10)...)
		v.ack(1, "fast", ids...)
		v.ack(1, "slow", ids[0], ids[1], ids[2], ids[5])
		v.trimmedTo(1, 3)
		v.same(v.read(1, 0), numbered("m", 3, 10))
		v.expect(1, "slow", "m3", "m4", "m6", "m7", "m8", "m9")
		v.ok(v.DeleteSubscription(v.ctx, 1, "slow"))
		v.trimmedTo(1, 10)
		if s := v.stats(1).Partitions[0]; s.Bytes != 0 || s.Next != 10 || s.LastPublish == 0 {
			v.Fatalf("got %+v, want no bytes, next entry 10 and a publish time", s)
		}
		v.crash()
		if id := v.put(1, "next")[0]; id.Entry != 10 {
			v.Fatalf("append after everything was trimmed: got entry %d, want 10", id.Entry)
		}
		v.expect(1, "fast", "next")
	}},
	{"settled messages are retained by age", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1, RetainAge: 50 * v.tick, RetainBytes: -1})
		v.sub(1, "s")
		v.put(1, "a")
		v.sleep(25)
		ids := v.put(1, "b", "c")
		v.settle(1, "s", engine.AckTo, ids[0])
		v.sleep(15)
		v.same(v.read(1, 0), []string{"a", "b", "c"})
		v.reopen()
		v.sleep(18)
		v.same(v.read(1, 0), []string{"b", "c"})
		v.sleep(30)
		v.trimmedTo(1, 2)
		v.sleep(30)
		v.expect(1, "s", "c") // not settled, so not trimmed
	}},
	{"a topic without subscriptions retains messages by age", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1, RetainAge: 50 * v.tick, RetainBytes: -1})
		v.put(1, "a")
		v.sleep(30)
		v.same(v.read(1, 0), []string{"a"})
		v.crash()
		v.sleep(40)
		v.same(v.read(1, 0), []string{})
	}},
	{"settled messages are retained by bytes", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: 5500})
		for range 20 {
			v.put(1, strings.Repeat("x", 1000))
		}
		v.eventually("trim", func() bool { return v.stats(1).Partitions[0].Bytes <= 5500 })
		if got := v.first(1); got != 15 {
			v.Fatalf("first entry: got %d, want 15", got)
		}
		v.sub(1, "s")
		for range 10 {
			v.put(1, strings.Repeat("y", 1000))
		}
		v.sleep(20)
		if got := v.first(1); got != 15 {
			v.Fatalf("got first entry %d, want 15: unacknowledged messages stay", got)
		}
	}},
	{"a limit in bytes applies to all partitions together", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 4, RetainAge: -1, RetainBytes: 8800})
		for i := range 40 {
			v.putPart(1, int32(i%4), strings.Repeat("x", 1000))
		}
		v.eventually("trim", func() bool {
			var total int64
			for _, p := range v.stats(1).Partitions {
				total += p.Bytes
			}
			return total <= 8800 && total > 3000
		})
	}},
	{"unacknowledged messages are settled after their time to live", func(v *env) {
		c := retainAll
		c.TTL = 60 * v.tick
		v.topic(1, c)
		v.sub(1, "s")
		v.put(1, "a", "b")
		v.sleep(30)
		v.put(1, "c")
		v.same(payloads(v.get(1, "s", 1)), []string{"a"})
		v.reopen()
		v.sleep(36)
		if s := v.subStats(1, "s"); s.Backlog != 1 || s.Cursors[0].Floor != 2 {
			v.Fatalf("got %+v, want a backlog of 1 above floor 2", s)
		}
		v.expect(1, "s", "c")
		v.sleep(40)
		if s := v.subStats(1, "s"); s.Backlog != 0 || s.BacklogBytes != 0 || s.Leased != 0 {
			v.Fatalf("got %+v, want no backlog and nothing leased", s)
		}
		v.same(v.read(1, 0), []string{"a", "b", "c"}) // settled, and retained
	}},
	{"a topic over its quota rejects messages", func(v *env) {
		c := retainAll
		c.BacklogBytes = 5000
		v.topic(1, c)
		big := strings.Repeat("x", 1000)
		for range 10 {
			v.put(1, big) // without a subscription there is no backlog
		}
		v.subAt(1, "s", engine.Position{Kind: engine.Latest})
		for range 4 {
			v.put(1, big)
		}
		_, err := v.Append(v.ctx, 1, 0, []engine.Message{{Payload: []byte(big)}})
		v.want(err, engine.ErrBacklogFull)
		v.reopen()
		_, err = v.Append(v.ctx, 1, 0, []engine.Message{{Payload: []byte(big)}})
		v.want(err, engine.ErrBacklogFull)
		got := v.get(1, "s", 2)
		v.ack(1, "s", got[0].ID, got[1].ID)
		v.put(1, big)
		v.put(1, big)
		_, err = v.Append(v.ctx, 1, 0, []engine.Message{{Payload: []byte(big)}})
		v.want(err, engine.ErrBacklogFull)
	}},
	{"a topic over its quota that evicts settles the oldest messages", func(v *env) {
		c := engine.TopicConfig{Partitions: 2, BacklogBytes: 5500, BacklogEvict: true}
		v.topic(1, c)
		v.sub(1, "s")
		for i := range 20 {
			v.putPart(1, int32(i%2), strings.Repeat("x", 1000))
			v.sleep(0.1)
		}
		v.eventually("eviction", func() bool { return v.subStats(1, "s").BacklogBytes <= 5500 })
		s := v.subStats(1, "s")
		if s.Backlog != 5 || s.Cursors[0].Floor != 8 || s.Cursors[1].Floor != 7 {
			v.Fatalf("got %+v, want a backlog of 5 above floors 8 and 7", s)
		}
		if n := len(v.get(1, "s", 100)); n != 5 {
			v.Fatalf("got %d messages, want 5", n)
		}
	}},
	{"a changed policy applies to stored messages", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, numbered("m", 0, 10)...)
		v.sleep(10)
		v.same(v.read(1, 0), numbered("m", 0, 10))
		v.ok(v.ConfigureTopic(v.ctx, 1,
			engine.TopicConfig{Partitions: 1, RetainAge: time.Millisecond, RetainBytes: -1}))
		v.eventually("trim", func() bool { return v.first(1) == 10 })
	}},
	{"requests may refer to trimmed entries", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1})
		v.sub(1, "s")
		ids := v.put(1, numbered("m", 0, 5)...)
		v.ack(1, "s", ids[0], ids[1], ids[2])
		v.trimmedTo(1, 3)
		v.ack(1, "s", ids[0])
		v.want(v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: ids[1], Action: engine.Nack}}), engine.ErrLeaseEnded)
		v.settle(1, "s", engine.AckTo, ids[1])
		v.subAt(1, "at", engine.Position{Kind: engine.AtID, ID: ids[1]})
		v.expect(1, "at", "m3", "m4")
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.AtID, ID: ids[0]}))
		v.expect(1, "s", "m3", "m4")
		records, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 10, From: 1})
		v.ok(err)
		if len(records) != 2 || records[0].ID.Entry != 3 {
			v.Fatalf("got %v, want entries 3 and 4", records)
		}
	}},
}
