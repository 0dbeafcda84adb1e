package enginetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"freshet/internal/storage/engine"
)

// Lines is the Splitter for the batches of this suite, whose body has one line per message: its
// timestamp, a space, and its payload. Engines under test are opened with it.
type Lines struct{}

// Open implements engine.Splitter.
func (Lines) Open(format engine.BatchFormat, body []byte) (engine.BatchReader, error) {
	if format != engine.KafkaRecordBatch {
		return nil, fmt.Errorf("format %d is unknown to this suite", format)
	}
	return &lineReader{body: body}, nil
}

// lineReader reads the lines of a batch.
type lineReader struct {
	body []byte
	next int32
}

// Next implements engine.BatchReader.
func (r *lineReader) Next(from int32, _ func(total int64) error) (int32, *engine.Message, error) {
	for len(r.body) > 0 {
		line, rest, _ := bytes.Cut(r.body, []byte("\n"))
		at, payload, ok := bytes.Cut(line, []byte(" "))
		millis, err := strconv.ParseInt(string(at), 10, 64)
		if !ok || err != nil {
			return 0, nil, fmt.Errorf("line %d is malformed: %q", r.next, line)
		}
		r.body = rest
		if r.next++; r.next > from {
			return r.next - 1, &engine.Message{
				Payload: payload, EventTime: millis, SchemaVersion: engine.NoSchema,
			}, nil
		}
	}
	return 0, nil, io.EOF
}

// Memory implements engine.BatchReader.
func (*lineReader) Memory() int64 { return 0 }

// Close implements engine.BatchReader.
func (*lineReader) Close() {}

// timedMessage is a message of a batch.
type timedMessage struct {
	at      int64
	payload string
}

func timedBatch(messages ...timedMessage) engine.MessageBatch {
	batch := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: int32(len(messages)), MaxTime: -1}
	for _, m := range messages {
		batch.Body = fmt.Appendf(batch.Body, "%d %s\n", m.at, m.payload)
		batch.MaxTime = max(batch.MaxTime, m.at)
	}
	return batch
}

// plainBatch returns a batch of payloads that share a timestamp.
func plainBatch(payloads ...string) engine.MessageBatch {
	messages := make([]timedMessage, len(payloads))
	for i, p := range payloads {
		messages[i] = timedMessage{1, p}
	}
	return timedBatch(messages...)
}

// putBatch appends a batch to partition 0, waits until it is durable, and returns its first
// entry.
func (v *env) putBatch(id engine.TopicID, r engine.MessageBatch, attributes ...engine.AttributeWrite) uint64 {
	v.Helper()
	pending, err := v.AppendBatch(v.ctx, id, 0, r, attributes)
	v.ok(err)
	v.ok(pending.Wait(v.ctx))
	return pending.First()
}

// writeOf returns the write of an attribute.
func writeOf(key, value string) engine.AttributeWrite {
	return engine.AttributeWrite{Attribute: engine.Attribute{Key: []byte(key), Value: []byte(value)}}
}

// stored returns what ReadRuns visits from an entry on: batches as [first: body], messages as
// first: payload.
func (v *env) stored(id engine.TopicID, from uint64) []string {
	v.Helper()
	out := []string{}
	_, err := v.ReadBatches(v.ctx, id, 0, from, func(s *engine.StoredValue) (bool, error) {
		if s.Run.Count > 0 {
			out = append(out, fmt.Sprintf("[%d: %s]", s.First,
				strings.ReplaceAll(strings.TrimSpace(string(s.Run.Body)), "\n", ",")))
		} else {
			out = append(out, fmt.Sprintf("%d: %s", s.First, s.Record.Payload))
		}
		return true, nil
	})
	v.ok(err)
	return out
}

// attribute returns the value of an attribute, "" if it does not exist.
func (v *env) attribute(id engine.TopicID, key string) string {
	v.Helper()
	got := ""
	v.ok(v.Attributes(v.ctx, id, 0, []byte(key), func(s engine.Attribute) error {
		if string(s.Key) == key {
			got = string(s.Value)
		}
		return nil
	}))
	return got
}

var batchTests = []testCase{
	{"batches are stored unchanged and have one entry per message", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, "a")
		if first := v.putBatch(1, plainBatch("b", "c", "d")); first != 1 {
			v.Fatalf("first entry: got %d, want 1", first)
		}
		v.put(1, "e")
		for range 2 {
			v.same(v.stored(1, 0), []string{"0: a", "[1: 1 b,1 c,1 d]", "4: e"})
			v.same(v.stored(1, 2), []string{"[1: 1 b,1 c,1 d]", "4: e"})
			v.same(v.stored(1, 3), []string{"[1: 1 b,1 c,1 d]", "4: e"})
			v.same(v.stored(1, 4), []string{"4: e"})
			v.same(v.stored(1, 5), []string{})
			v.same(v.read(1, 0), []string{"a", "b", "c", "d", "e"})
			v.reopen()
		}
		if extent, err := v.ReadBatches(v.ctx, 1, 0, 0, nil); err != nil || extent != (engine.Extent{Next: 5}) {
			v.Fatalf("extent: got %+v, %v; want entries 0 to 5", extent, err)
		}
	}},
	{"read can start within a batch", func(v *env) {
		v.topic(1, retainAll)
		v.putBatch(1, plainBatch(numbered("m", 0, 10)...))
		records, err := v.Read(v.ctx, 1, engine.ReadRequest{From: 7, Max: 2})
		v.ok(err)
		if len(records) != 2 || string(records[0].Payload) != "m7" || records[1].ID.Entry != 8 {
			v.Fatalf("got %v, want m7 and m8", records)
		}
	}},
	{"messages of a batch are received and acknowledged individually", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		v.putBatch(1, plainBatch("b", "c", "d"))
		v.put(1, "e")
		got := v.get(1, "s", 3)
		v.same(payloads(got), []string{"a", "b", "c"})
		v.ack(1, "s", got[1].ID)
		v.settle(1, "s", engine.Nack, got[0].ID, got[2].ID)
		v.reopen()
		again := v.expect(1, "s", "a", "c", "d", "e")
		if again[1].ID.Entry != 2 {
			v.Fatalf("c: got %v, want entry 2", again[1].ID)
		}
		v.ack(1, "s", again[0].ID, again[1].ID, again[2].ID, again[3].ID)
		if s := v.subStats(1, "s"); s.Backlog != 0 || s.BacklogBytes != 0 || s.Cursors[0].Floor != 5 {
			v.Fatalf("got %+v, want no backlog and the floor at 5", s)
		}
	}},
	{"the bytes of a backlog are exact within batches", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.putBatch(1, plainBatch(numbered("some payload ", 0, 7)...))
		total := v.subStats(1, "s").BacklogBytes
		if want := v.stats(1).Partitions[0].Bytes; total != want {
			v.Fatalf("backlog: got %d bytes, want all %d", total, want)
		}
		for i, d := range v.get(1, "s", 10) {
			v.ack(1, "s", d.ID)
			left := v.subStats(1, "s").BacklogBytes
			if want := total - total*int64(i+1)/7; left != want {
				v.Fatalf("after %d of 7: got %d bytes, want %d", i+1, left, want)
			}
		}
	}},
	{"a batch is trimmed when all of it is settled", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1})
		v.sub(1, "s")
		v.putBatch(1, plainBatch("a", "b", "c"))
		v.putBatch(1, plainBatch("d", "e"))
		got := v.get(1, "s", 4)
		v.ack(1, "s", got[0].ID, got[1].ID)
		v.eventually("entries 0 and 1 to be trimmed", func() bool { return v.stats(1).Partitions[0].First == 2 })
		v.same(v.read(1, 0), []string{"c", "d", "e"})
		v.reopen()
		v.same(v.read(1, 0), []string{"c", "d", "e"})
		v.same(v.stored(1, 0), []string{"[0: 1 a,1 b,1 c]", "[3: 1 d,1 e]"})
		v.ack(1, "s", got[2].ID, got[3].ID)
		v.eventually("entries up to 3 to be trimmed", func() bool { return v.stats(1).Partitions[0].First == 4 })
		v.same(v.stored(1, 0), []string{"[3: 1 d,1 e]"})
		v.same(v.read(1, 0), []string{"e"})
	}},
	{"positions may be within batches", func(v *env) {
		v.topic(1, retainAll)
		v.putBatch(1, plainBatch("a", "b", "c"))
		v.subAt(1, "at", engine.Position{Kind: engine.AtID, ID: engine.MessageID{Topic: 1, Entry: 1}})
		v.expect(1, "at", "b", "c")
		v.sub(1, "skip")
		v.ok(v.ResetSubscription(v.ctx, 1, "skip", engine.Position{Kind: engine.SkipN, Count: 2}))
		v.expect(1, "skip", "c")
	}},
	{"messages of batches become dead letters", func(v *env) {
		v.topic(9, retainAll)
		v.topic(1, retainAll)
		v.ok(v.CreateSubscription(v.ctx, 1, "s",
			engine.SubscriptionConfig{MaxDeliveries: 1, DeadLetterTopic: 9, Lease: time.Hour},
			engine.Position{Kind: engine.Earliest}))
		v.putBatch(1, plainBatch("a", "b"))
		got := v.get(1, "s", 2)
		v.settle(1, "s", engine.Nack, got[1].ID)
		v.eventually("b among the dead letters", func() bool { return len(v.read(9, 0)) == 1 })
		v.same(v.read(9, 0), []string{"b"})
	}},
	{"partitions with batches are merged by publish time", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.putBatch(1, plainBatch("a", "b"))
		v.sleep(1)
		v.putPart(1, 1, "c")
		v.sleep(1)
		v.putBatch(1, plainBatch("d", "e"))
		records, err := v.Read(v.ctx, 1, engine.ReadRequest{Partition: engine.AllPartitions, Max: 10})
		v.ok(err)
		var got []string
		for _, r := range records {
			got = append(got, string(r.Payload))
		}
		v.same(got, []string{"a", "b", "c", "d", "e"})
	}},
	{"batches can be appended before earlier ones are durable", func(v *env) {
		v.topic(1, retainAll)
		var appends []engine.PendingAppend
		for i := range 50 {
			t, err := v.AppendBatch(v.ctx, 1, 0, plainBatch(fmt.Sprint(i), "x"), nil)
			v.ok(err)
			appends = append(appends, t)
		}
		for i, t := range appends {
			v.ok(t.Wait(v.ctx))
			if t.First() != uint64(2*i) || t.PublishTime() == 0 {
				v.Fatalf("batch %d: got entry %d published at %d, want entry %d", i, t.First(), t.PublishTime(), 2*i)
			}
		}
	}},
	{"attributes are written with their batch", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.putBatch(1, plainBatch("a"), writeOf("p1", "one"), writeOf("p2", "two"))
		v.putBatch(1, plainBatch("b"), writeOf("p1", "three"),
			engine.AttributeWrite{Attribute: engine.Attribute{Key: []byte("p2")}})
		for range 2 {
			if v.attribute(1, "p1") != "three" || v.attribute(1, "p2") != "" {
				v.Fatalf("got %q and %q, want three and nothing", v.attribute(1, "p1"), v.attribute(1, "p2"))
			}
			v.crash()
		}
		var other []string
		v.ok(v.Attributes(v.ctx, 1, 1, nil, func(s engine.Attribute) error {
			other = append(other, string(s.Key))
			return nil
		}))
		v.same(other, []string{})
		large := writeOf("p", strings.Repeat("x", engine.MaxAttributeBytes+1))
		_, err := v.AppendBatch(v.ctx, 1, 0, plainBatch("c"), []engine.AttributeWrite{large})
		v.want(err, engine.ErrTooLarge)
		v.ok(v.DeleteTopic(v.ctx, 1))
		v.topic(2, retainAll)
		if v.attribute(2, "p1") != "" {
			v.Fatal("got an attribute of another topic, want none")
		}
	}},
	{"an attribute gets the first entry of its batch", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, "a")
		write := func(value string) []engine.AttributeWrite {
			w := writeOf("first", value)
			w.AppendEntry = true
			return []engine.AttributeWrite{w}
		}
		var last engine.PendingAppend
		for i := range 3 { // the attribute is written several times before the first batch is durable
			var err error
			attributes := write(fmt.Sprint("v", i))
			last, err = v.AppendBatch(v.ctx, 1, 0, plainBatch("x", "y"), attributes)
			v.ok(err)
			copy(attributes[0].Value, "??") // the engine does not retain it
		}
		v.ok(last.Wait(v.ctx))
		for range 2 {
			want := string(binary.BigEndian.AppendUint64([]byte("v2"), last.First()))
			if got := v.attribute(1, "first"); got != want || last.First() != 5 {
				v.Fatalf("got the attribute %q and the first entry %d, want %q and 5", got, last.First(), want)
			}
			v.crash()
		}
		_, err := v.AppendBatch(v.ctx, 1, 0, plainBatch("b"), write(""))
		v.ok(err)
		if got := v.attribute(1, "first"); got != "\x00\x00\x00\x00\x00\x00\x00\x07" {
			v.Fatalf("got the attribute %q, want only the first entry, 7", got)
		}
		_, err = v.AppendBatch(v.ctx, 1, 0, plainBatch("c"), write(strings.Repeat("x", engine.MaxAttributeBytes-7)))
		v.want(err, engine.ErrTooLarge)
	}},
	{"messages are found by their timestamps", func(v *env) {
		v.topic(1, retainAll)
		v.putBatch(1, timedBatch(timedMessage{100, "a"}, timedMessage{300, "b"}, timedMessage{200, "c"}))
		v.putBatch(1, timedBatch(timedMessage{150, "d"}))
		v.putBatch(1, timedBatch(timedMessage{400, "e"}, timedMessage{500, "f"}, timedMessage{450, "g"}))
		for range 2 {
			for _, c := range []struct{ at, entry, time int64 }{
				{0, 0, 100}, {100, 0, 100}, {101, 1, 300}, {300, 1, 300}, {301, 4, 400}, {401, 5, 500}, {500, 5, 500},
			} {
				got, err := v.FindByTime(v.ctx, 1, 0, c.at)
				if want := (engine.FindResult{OK: true, Entry: uint64(c.entry), Time: c.time}); err != nil ||
					got != want {
					v.Fatalf("at %d: got %+v, %v; want %+v", c.at, got, err, want)
				}
			}
			if got, err := v.FindByTime(v.ctx, 1, 0, 501); err != nil || got.OK {
				v.Fatalf("at 501: got %+v, %v; want nothing", got, err)
			}
			if got, err := v.FindNewest(v.ctx, 1, 0); err != nil ||
				got != (engine.FindResult{OK: true, Entry: 5, Time: 500}) {
				v.Fatalf("newest: got %+v, %v; want entry 5 at 500", got, err)
			}
			v.reopen()
		}
		v.putMsg(1, 0, engine.Message{Payload: []byte("h"), EventTime: 350, SchemaVersion: engine.NoSchema})
		v.putMsg(1, 0, engine.Message{Payload: []byte("i"), SchemaVersion: engine.NoSchema})
		if got, err := v.FindByTime(v.ctx, 1, 0, 501); err != nil || got.Entry != 8 {
			v.Fatalf("at 501: got %+v, %v; want entry 8, whose timestamp is its publish time", got, err)
		}
	}},
	{"the newest message is found after a newer one was trimmed", func(v *env) {
		v.topic(1, engine.TopicConfig{Partitions: 1})
		v.sub(1, "s")
		v.putBatch(1, timedBatch(timedMessage{900, "a"}))
		v.putBatch(1, timedBatch(timedMessage{100, "b"}, timedMessage{200, "c"}))
		v.ack(1, "s", v.get(1, "s", 1)[0].ID)
		v.eventually("entry 0 to be trimmed", func() bool { return v.stats(1).Partitions[0].First == 1 })
		if got, err := v.FindNewest(v.ctx, 1, 0); err != nil ||
			got != (engine.FindResult{OK: true, Entry: 2, Time: 200}) {
			v.Fatalf("got %+v, %v; want entry 2 at 200", got, err)
		}
	}},
	{"one call waits for many partitions", func(v *env) {
		v.topic(1, retainAllParts(3))
		positions := []engine.PartitionPosition{{Topic: 1}, {Topic: 1, Partition: 1}, {Topic: 1, Partition: 2}}
		short, cancel := context.WithTimeout(v.ctx, v.tick)
		defer cancel()
		v.want(v.WaitEntries(short, positions), context.DeadlineExceeded)
		done := make(chan error, 1)
		go func() { done <- v.WaitEntries(v.ctx, positions) }()
		if v.tick == time.Second {
			synctest.Wait()
		}
		v.putPart(1, 2, "a")
		v.ok(<-done)
		v.ok(v.WaitEntries(v.ctx, positions)) // returns immediately
		positions[2].Entry = 1
		go func() { done <- v.WaitEntries(v.ctx, positions) }()
		v.sleep(1)
		v.ok(v.DeleteTopic(v.ctx, 1))
		v.want(<-done, engine.ErrNoTopic)
	}},
	{"invalid batches are rejected", func(v *env) {
		v.topic(1, retainAll)
		for _, c := range []struct {
			name string
			run  engine.MessageBatch
			want error
		}{
			{"no messages", engine.MessageBatch{Format: engine.KafkaRecordBatch}, engine.ErrInvalid},
			{"no format", engine.MessageBatch{Count: 1}, engine.ErrInvalid},
			{
				"too large",
				engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: 1, Body: make([]byte, 65<<20)},
				engine.ErrTooLarge,
			},
		} {
			if _, err := v.AppendBatch(v.ctx, 1, 0, c.run, nil); err == nil {
				v.Fatalf("%s: got no error, want %v", c.name, c.want)
			} else {
				v.want(err, c.want)
			}
		}
		_, err := v.AppendBatch(v.ctx, 1, 7, plainBatch("a"), nil)
		v.want(err, engine.ErrNoPartition)
		_, err = v.AppendBatch(v.ctx, 7, 0, plainBatch("a"), nil)
		v.want(err, engine.ErrNoTopic)
		terminated := retainAll
		terminated.Terminated = true
		v.ok(v.ConfigureTopic(v.ctx, 1, terminated))
		_, err = v.AppendBatch(v.ctx, 1, 0, plainBatch("a"), nil)
		v.want(err, engine.ErrTerminated)
		v.same(v.read(1, 0), []string{})
	}},
	{"messages that are appended together are read individually", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		msgs := []engine.Message{
			{
				Payload: []byte("a"), Key: "k", Properties: []engine.Property{{Key: "p", Value: "1"}}, EventTime: 7,
				SchemaVersion: 3, Producer: "me", Sequence: 4, HasSequence: true,
			},
			{
				NullPayload: true, EmptyKey: true,
				Properties:    []engine.Property{{Key: "n", Null: true}, {Key: "e"}, {Key: "v", Value: "w"}},
				SchemaVersion: engine.NoSchema,
			},
			{Payload: bytes.Repeat([]byte("x"), 300<<10), SchemaVersion: engine.NoSchema},
			{Payload: []byte("d"), SchemaVersion: engine.NoSchema},
		}
		_, err := v.Append(v.ctx, 1, 0, msgs)
		v.ok(err)
		for range 2 {
			got, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 10})
			v.ok(err)
			if len(got) != 4 {
				v.Fatalf("got %d messages, want 4", len(got))
			}
			for i := range got {
				want := fmt.Sprintf("%+v", msgs[i])
				if i == 1 {
					got[i].Payload = nil // only NullPayload matters
				}
				if s := fmt.Sprintf("%+v", got[i].Message); s != want {
					v.Fatalf("message %d: got %.200s, want %.200s", i, s, want)
				}
			}
			v.reopen()
		}
		v.same(v.stored(1, 3), []string{"3: d"})
	}},
}
