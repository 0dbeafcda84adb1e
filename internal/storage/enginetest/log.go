package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"freshet/internal/storage/engine"
)

var logTests = []testCase{
	{"entries of a partition start at 0 and grow by one", func(v *env) {
		v.topic(5, retainAllParts(2))
		for part := range int32(2) {
			for i, id := range v.putPart(5, part, numbered("m", 0, 5)...) {
				if id != (engine.MessageID{Topic: 5, Partition: part, Entry: uint64(i)}) {
					v.Fatalf("message %d: got id %+v, want entry %d of partition %d", i, id, i, part)
				}
			}
		}
		v.reopen()
		if id := v.put(5, "more")[0]; id.Entry != 5 {
			v.Fatalf("after a restart: got %+v, want entry 5", id)
		}
	}},
	{"all fields of a message are stored", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		want := []engine.Message{
			{Payload: []byte{}, SchemaVersion: engine.NoSchema},
			{Payload: []byte("p"), Key: "k", SchemaVersion: 0},
			{
				Payload: bytes.Repeat([]byte{0, 0xff, 'x'}, 1000), Key: "ключ\x00",
				Properties: []engine.Property{
					{Key: "z", Value: ""}, {Key: "a", Value: "1"}, {Key: "z", Value: "two"},
				},
				EventTime:     -5,
				SchemaVersion: math.MaxInt64,
				Producer:      "me", Sequence: math.MaxUint64, HasSequence: true,
				DeliverAt: 1,
				Dedup:     engine.DedupKey{Producer: "me", Sequence: math.MaxUint64},
			},
			{
				Payload: []byte("numbered"), SchemaVersion: engine.NoSchema, Producer: "me", Sequence: 7,
				HasSequence: true,
			},
			{
				Payload: []byte("keyed"), SchemaVersion: engine.NoSchema, Producer: "me", Sequence: 7,
				HasSequence: true,
				Dedup:       engine.DedupKey{Producer: "key"},
			},
			{Payload: bytes.Repeat([]byte("big"), 1<<20), SchemaVersion: engine.NoSchema, HasSequence: true},
			{
				Payload: []byte(strings.Repeat("h", 300)), SchemaVersion: engine.NoSchema, EventTime: 1 << 50,
				Producer: "only",
			},
		}
		_, err := v.Append(v.ctx, 1, 0, want)
		v.ok(err)
		check := func() {
			v.Helper()
			got, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 10})
			v.ok(err)
			for i := range want {
				if len(got[i].Payload) == 0 {
					got[i].Payload = []byte{}
				}
				if !reflect.DeepEqual(got[i].Message, want[i]) {
					v.Fatalf("message %d: got %.200q, want %.200q", i, fmt.Sprint(got[i].Message), fmt.Sprint(want[i]))
				}
			}
		}
		check()
		v.reopen()
		check()
		if got := v.get(1, "s", 10); len(got) != len(want) || !bytes.Equal(got[5].Payload, want[5].Payload) {
			v.Fatalf("got %d messages, want %d with the same payloads", len(got), len(want))
		}
	}},
	{"an append of several messages is ordered, and all or none", func(v *env) {
		v.topic(1, retainAll)
		var msgs []engine.Message
		for _, p := range numbered("m", 0, 100) {
			msgs = append(msgs, engine.Message{Payload: []byte(p)})
		}
		out, err := v.Append(v.ctx, 1, 0, msgs)
		v.ok(err)
		for i := range out {
			if out[i].ID.Entry != uint64(i) || out[i].Duplicate {
				v.Fatalf("message %d: got %+v, want entry %d", i, out[i], i)
			}
		}
		v.same(v.read(1, 0), numbered("m", 0, 100))
		_, err = v.Append(v.ctx, 1, 1, msgs)
		v.want(err, engine.ErrNoPartition)
		_, err = v.Append(v.ctx, 1, -1, msgs)
		v.want(err, engine.ErrNoPartition)
		v.same(v.read(1, 0), numbered("m", 0, 100))
		out, err = v.Append(v.ctx, 1, 0, nil)
		v.ok(err)
		if len(out) != 0 {
			v.Fatalf("got %v, want nothing appended", out)
		}
	}},
	{"concurrent appends get consecutive and unique ids", func(v *env) {
		v.topic(1, retainAllParts(2))
		var mu sync.Mutex
		seen := map[engine.MessageID]string{}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				var last [2]uint64
				for i := range 50 {
					part, p := int32(i%2), fmt.Sprintf("%d/%d", w, i)
					out, err := v.Append(v.ctx, 1, part, []engine.Message{{Payload: []byte(p)}})
					if err != nil {
						v.Error(err)
						return
					}
					id := out[0].ID
					if i > 1 && id.Entry <= last[part] {
						v.Errorf("got entry %d, want more than %d", id.Entry, last[part])
					}
					last[part] = id.Entry
					mu.Lock()
					if other, dup := seen[id]; dup {
						v.Errorf("%v: got both %s and %s, want one message", id, other, p)
					}
					seen[id] = p
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for part := range int32(2) {
			got := v.read(1, part)
			if len(got) != 200 {
				v.Fatalf("got %d messages, want 200", len(got))
			}
			for i, p := range got {
				if want := seen[engine.MessageID{Topic: 1, Partition: part, Entry: uint64(i)}]; p != want {
					v.Fatalf("entry %d: got %s, want %s", i, p, want)
				}
			}
		}
	}},
	{"publish times never decrease", func(v *env) {
		v.topic(1, retainAll)
		for range 5 {
			v.put(1, "x")
			v.sleep(0.1)
		}
		records, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 10})
		v.ok(err)
		now := time.Now().UnixMilli()
		for i := 1; i < len(records); i++ {
			if records[i].PublishTime < records[i-1].PublishTime || records[i].PublishTime > now {
				v.Fatalf("got publish time %d, want it between %d and %d", records[i].PublishTime,
					records[i-1].PublishTime, now)
			}
		}
		if v.stats(1).Partitions[0].LastPublish != records[4].PublishTime {
			v.Fatalf("last publish time: got %d, want %d", v.stats(1).Partitions[0].LastPublish, records[4].PublishTime)
		}
	}},
	{"read starts, filters and stops as requested", testRead},
	{"read waits for the first message, up to its wait", func(v *env) {
		v.topic(1, retainAllParts(2))
		start := time.Now()
		got, err := v.Read(v.ctx, 1, engine.ReadRequest{Partition: 1, Max: 1, Wait: v.tick})
		v.ok(err)
		if took := time.Since(start); len(got) != 0 || took < v.tick || took > 2*v.tick+v.slack {
			v.Fatalf("got %d messages after %v, want none after %v", len(got), took, v.tick)
		}
		for _, part := range []int32{1, engine.AllPartitions} {
			result := make(chan []engine.Record, 1)
			go func() {
				got, err := v.Read(v.ctx, 1,
					engine.ReadRequest{Partition: part, From: v.stats(1).Partitions[1].Next, Max: 5, Wait: time.Hour})
				if err != nil {
					v.Error(err)
				}
				result <- got
			}()
			v.sleep(0.2)
			v.putPart(1, 1, "x")
			if got := <-result; len(got) != 1 || string(got[0].Payload) != "x" {
				v.Fatalf("got %v, want one message x", got)
			}
		}
		ctx, cancel := context.WithCancel(v.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := v.Read(ctx, 1, engine.ReadRequest{Partition: 0, Max: 1, Wait: time.Hour})
			done <- err
		}()
		v.sleep(0.2)
		cancel()
		v.want(<-done, context.Canceled)
	}},
	{"read continues from an entry in each partition, and covers new partitions", testTail},
	{"statistics of a partition are exact", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.putPart(1, 1, strings.Repeat("x", 1000), strings.Repeat("y", 500))
		check := func() {
			v.Helper()
			p := v.stats(1).Partitions
			if len(p) != 2 || p[0] != (engine.PartitionStats{}) {
				v.Fatalf("got %+v, want two partitions, the first of them empty", p)
			}
			if p[1].First != 0 || p[1].Next != 2 || p[1].Bytes < 1500 || p[1].Bytes > 1800 {
				v.Fatalf("got %+v, want entries 0 to 2 and 1500 bytes or little more", p[1])
			}
		}
		check()
		before := v.stats(1).Partitions[1]
		v.reopen()
		check()
		if after := v.stats(1).Partitions[1]; after != before {
			v.Fatalf("after a restart: got %+v, want %+v", after, before)
		}
	}},
}

func testRead(v *env) {
	v.topic(1, retainAllParts(2))
	v.sub(1, "s")
	var since time.Time
	for i := range 10 {
		if i == 6 {
			since = time.Now()
		}
		v.putPart(1, int32(i%2), fmt.Sprintf("m%d", i))
		v.sleep(0.1)
	}
	read := func(req engine.ReadRequest) []string {
		v.Helper()
		records, err := v.Read(v.ctx, 1, req)
		v.ok(err)
		out := []string{}
		for _, r := range records {
			out = append(out, string(r.Payload))
		}
		return out
	}
	all := engine.AllPartitions
	v.same(read(engine.ReadRequest{Partition: 0, Max: 100}), []string{"m0", "m2", "m4", "m6", "m8"})
	v.same(read(engine.ReadRequest{Partition: 1, From: 3, Max: 100}), []string{"m7", "m9"})
	v.same(read(engine.ReadRequest{Partition: 1, From: 5, Max: 100}), []string{})
	v.same(read(engine.ReadRequest{Partition: 1, From: math.MaxUint64, Max: 100}), []string{})
	v.same(read(engine.ReadRequest{Partition: all, Max: 100}), numbered("m", 0, 10))
	v.same(read(engine.ReadRequest{Partition: all, Max: 3}), numbered("m", 0, 3))
	v.same(read(engine.ReadRequest{Partition: all, Max: 100, Since: since}), numbered("m", 6, 10))
	v.same(read(engine.ReadRequest{Partition: all, Max: 100, MaxBytes: 5}), numbered("m", 0, 2))
	v.same(read(engine.ReadRequest{Partition: all, Max: 100, MaxBytes: 1}), numbered("m", 0, 1))
	v.ack(1, "s", engine.MessageID{Topic: 1, Partition: 0, Entry: 1},
		engine.MessageID{Topic: 1, Partition: 1, Entry: 0})
	v.same(read(engine.ReadRequest{Partition: all, Max: 100, Subscription: "s"}),
		[]string{"m0", "m3", "m4", "m5", "m6", "m7", "m8", "m9"})
	_, err := v.Read(v.ctx, 1, engine.ReadRequest{Partition: 2, Max: 1})
	v.want(err, engine.ErrNoPartition)
	_, err = v.Read(v.ctx, 1, engine.ReadRequest{Partition: 0})
	v.want(err, engine.ErrInvalid)
	_, err = v.Read(v.ctx, 1, engine.ReadRequest{Max: 1, Subscription: "none"})
	v.want(err, engine.ErrNoSubscription)
	if d := v.subStats(1, "s"); d.Leased != 0 {
		v.Fatalf("got %d leased messages, want none: reading leases nothing", d.Leased)
	}
}

// testTail follows a topic that grows, in messages and in partitions.
func testTail(v *env) {
	v.topic(1, retainAllParts(2))
	v.putPart(1, 0, "a0", "a1")
	v.putPart(1, 1, "b0")
	next := []uint64{1, 1}
	tail := func() (got []string) {
		v.Helper()
		records, err := v.Read(v.ctx, 1, engine.ReadRequest{
			Partition: engine.AllPartitions, FromEach: next, Max: 10,
			Wait: time.Hour,
		})
		v.ok(err)
		for _, r := range records {
			for int(r.ID.Partition) >= len(next) {
				next = append(next, 0)
			}
			if want := next[r.ID.Partition]; r.ID.Entry != want {
				v.Fatalf("read: got %v, want entry %d", r.ID, want)
			}
			next[r.ID.Partition]++
			got = append(got, string(r.Payload))
		}
		return got
	}
	v.same(tail(), []string{"a1"})
	for _, step := range []struct {
		parts int32
		into  int32
		text  string
	}{{2, 1, "b1"}, {2, 0, "a2"}, {4, 3, "d0"}, {4, 2, "c0"}, {4, 0, "a3"}} {
		done := make(chan []string, 1)
		go func() { done <- tail() }()
		v.sleep(0.2) // let it wait
		v.ok(v.ConfigureTopic(v.ctx, 1, retainAllParts(step.parts)))
		v.putPart(1, step.into, step.text)
		v.same(<-done, []string{step.text})
	}
	records, err := v.Read(v.ctx, 1, engine.ReadRequest{Partition: engine.AllPartitions, FromEach: next[:1], Max: 10})
	v.ok(err)
	if len(records) != 4 { // everything of the partitions that are not listed
		v.Fatalf("got %v, want 4 messages", records)
	}
}
