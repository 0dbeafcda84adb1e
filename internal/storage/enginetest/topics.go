package enginetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"freshet/internal/storage/engine"
)

var topicTests = []testCase{
	{"a topic is created once", func(v *env) {
		v.topic(7, retainAll)
		v.want(v.CreateTopic(v.ctx, 7, retainAll), engine.ErrTopicExists)
		v.reopen()
		v.want(v.CreateTopic(v.ctx, 7, retainAll), engine.ErrTopicExists)
	}},
	{"an invalid configuration is rejected", func(v *env) {
		v.want(v.CreateTopic(v.ctx, 1, engine.TopicConfig{}), engine.ErrInvalid)
		v.want(v.CreateTopic(v.ctx, 1, engine.TopicConfig{Partitions: -1}), engine.ErrInvalid)
		v.topic(1, retainAllParts(2))
		v.want(v.ConfigureTopic(v.ctx, 1, retainAllParts(1)), engine.ErrInvalid)
	}},
	{"every call reports a missing topic", testMissingTopic},
	{"configurations survive a restart", func(v *env) {
		c := engine.TopicConfig{
			Partitions: 3, RetainAge: time.Hour, RetainBytes: 1 << 40, TTL: 2 * time.Hour,
			BacklogBytes: 1 << 30, BacklogEvict: true, Deduplicate: true, MaxUnacked: 17,
		}
		v.topic(1, c)
		v.reopen()
		if got := v.stats(1).Config; got != c {
			v.Fatalf("got %+v, want %+v", got, c)
		}
		c.TTL, c.MaxUnacked = 0, 0
		v.ok(v.ConfigureTopic(v.ctx, 1, c))
		v.crash()
		if got := v.stats(1).Config; got != c {
			v.Fatalf("after a crash: got %+v, want %+v", got, c)
		}
	}},
	{"topics are listed in order and in pages", func(v *env) {
		for _, id := range []engine.TopicID{9, 2, 300, 4, 1 << 40} {
			v.topic(id, retainAll)
		}
		v.ok(v.DeleteTopic(v.ctx, 4))
		var all []engine.TopicID
		for after := engine.TopicID(0); ; {
			page, err := v.ListTopics(v.ctx, after, 2)
			v.ok(err)
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			after = page[len(page)-1]
		}
		if fmt.Sprint(all) != fmt.Sprint([]engine.TopicID{2, 9, 300, 1 << 40}) {
			v.Fatalf("got %v, want 2, 9, 300 and %d", all, 1<<40)
		}
	}},
	{"every subscription starts at the beginning of a new partition", func(v *env) {
		v.topic(1, retainAll)
		v.put(1, "a")
		v.subAt(1, "s", engine.Position{Kind: engine.Latest})
		v.ok(v.ConfigureTopic(v.ctx, 1, retainAllParts(3)))
		v.putPart(1, 2, "b")
		v.expect(1, "s", "b")
		v.crash()
		v.expect(1, "s", "b")
		if n := len(v.subStats(1, "s").Cursors); n != 3 {
			v.Fatalf("got %d cursors, want 3", n)
		}
	}},
	{"a deleted topic is removed with its messages and subscriptions", testDeletedTopic},
	{"a deletion ends waiting callers", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		received, read := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
			received <- err
		}()
		go func() {
			_, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 1, Wait: time.Hour})
			read <- err
		}()
		v.sleep(0.5)
		v.ok(v.DeleteTopic(v.ctx, 1))
		v.want(<-received, engine.ErrNoTopic)
		v.want(<-read, engine.ErrNoTopic)
	}},
	{"a terminated topic rejects messages and still delivers", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "a")
		c := retainAll
		c.Terminated = true
		v.ok(v.ConfigureTopic(v.ctx, 1, c))
		_, err := v.Append(v.ctx, 1, 0, []engine.Message{{Payload: []byte("b")}})
		v.want(err, engine.ErrTerminated)
		v.reopen()
		_, err = v.Append(v.ctx, 1, 0, []engine.Message{{Payload: []byte("b")}})
		v.want(err, engine.ErrTerminated)
		v.ack(1, "s", v.expect(1, "s", "a")[0].ID)
	}},
	{"a closed engine returns ErrClosed, and closing ends waiting callers", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		j, err := v.Journal(v.ctx, "j")
		v.ok(err)
		errs := make(chan error, 3)
		go func() {
			_, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
			errs <- err
		}()
		go func() {
			_, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 1, Wait: time.Hour})
			errs <- err
		}()
		go func() { errs <- j.Wait(v.ctx, 0) }()
		v.sleep(0.5)
		v.ok(v.Health())
		old := v.Engine
		v.reopen()
		for range 3 {
			v.want(<-errs, engine.ErrClosed)
		}
		_, err = old.Append(v.ctx, 1, 0, []engine.Message{{}})
		v.want(err, engine.ErrClosed)
		v.want(old.Health(), engine.ErrClosed)
		_, err = j.Append(v.ctx, 0, []byte("x"))
		v.want(err, engine.ErrClosed)
		v.ok(old.Close())
	}},
}

func testMissingTopic(v *env) {
	calls := map[string]func() error{
		"append": func() error { _, err := v.Append(v.ctx, 1, 0, []engine.Message{{}}); return err },
		"read":   func() error { _, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 1}); return err },
		"receive": func() error {
			_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1})
			return err
		},
		"settle":    func() error { return v.Settle(v.ctx, 1, "s", nil) },
		"configure": func() error { return v.ConfigureTopic(v.ctx, 1, retainAll) },
		"delete":    func() error { return v.DeleteTopic(v.ctx, 1) },
		"describe":  func() error { _, err := v.DescribeTopic(v.ctx, 1); return err },
		"create subscription": func() error {
			return v.CreateSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{})
		},
		"configure subscription": func() error {
			return v.ConfigureSubscription(v.ctx, 1, "s",
				engine.SubscriptionConfig{})
		},
		"delete subscription": func() error { return v.DeleteSubscription(v.ctx, 1, "s") },
		"reset subscription":  func() error { return v.ResetSubscription(v.ctx, 1, "s", engine.Position{}) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, engine.ErrNoTopic) {
			v.Errorf("%s: got error %v, want %v", name, err, engine.ErrNoTopic)
		}
	}
}

func testDeletedTopic(v *env) {
	v.topic(1, retainAllParts(2))
	v.topic(2, retainAll)
	v.sub(1, "s")
	v.sub(2, "s")
	v.putPart(1, 1, numbered("a", 0, 10)...)
	v.put(2, "b")
	v.same(payloads(v.get(1, "s", 3)), numbered("a", 0, 3))
	v.ok(v.DeleteTopic(v.ctx, 1))
	testMissingTopic(v)
	v.crash()
	testMissingTopic(v)
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	ids, err := v.ListTopics(ctx, 0, 10)
	v.ok(err)
	if len(ids) != 1 || ids[0] != 2 {
		v.Fatalf("got %v, want topic 2 only", ids)
	}
	v.expect(2, "s", "b")
}
