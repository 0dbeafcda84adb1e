package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/storage/engine"
)

var receiveTests = []testCase{
	{"messages of a partition are delivered in order, once each", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, numbered("m", 0, 7)...)
		v.same(payloads(v.get(1, "s", 3)), numbered("m", 0, 3))
		v.same(payloads(v.get(1, "s", 3)), numbered("m", 3, 6))
		v.same(payloads(v.get(1, "s", 3)), numbered("m", 6, 7))
		v.expect(1, "s")
		_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Partition: engine.AllPartitions})
		v.want(err, engine.ErrInvalid)
	}},
	{"all partitions are drained, or the requested one", func(v *env) {
		v.topic(1, retainAllParts(5))
		v.sub(1, "s")
		want := []string{}
		for i := range 20 {
			p := fmt.Sprintf("%02d", i)
			want = append(want, p)
			v.putPart(1, int32(i%5), p)
		}
		one := v.getReq(1, "s", engine.ReceiveRequest{Max: 100, Partition: 3})
		v.same(payloads(one), []string{"03", "08", "13", "18"})
		got := payloads(one)
		for range 100 {
			got = append(got, payloads(v.get(1, "s", 1))...)
		}
		sort.Strings(got)
		v.same(got, want)
		_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: 5})
		v.want(err, engine.ErrNoPartition)
	}},
	{"a waiting caller gets the first message immediately", func(v *env) {
		v.needsTime()
		v.topic(1, retainAllParts(2))
		v.sub(1, "s")
		result := make(chan []engine.Delivery, 1)
		start := time.Now()
		go func() {
			got, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 5, Wait: time.Hour, Partition: engine.AllPartitions})
			if err != nil {
				v.Error(err)
			}
			result <- got
		}()
		v.sleep(1)
		v.putPart(1, 1, "x")
		if got := <-result; len(got) != 1 || time.Since(start) > 2*v.tick+v.slack {
			v.Fatalf("got %d messages after %v, want one after %v", len(got), time.Since(start), v.tick)
		}
	}},
	{"waiting without messages ends in time", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		for _, wait := range []time.Duration{0, v.tick / 10, v.tick} {
			start := time.Now()
			got := v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: wait, Partition: engine.AllPartitions})
			if took := time.Since(start); len(got) != 0 || took < wait || took > wait+50*time.Millisecond+v.slack {
				v.Fatalf("got %d messages after %v, want none after %v", len(got), took, wait)
			}
		}
	}},
	{"waiting callers are served in the order of their arrival", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		served := make(chan int, 10)
		for i := range 10 {
			go func() {
				got, err := v.Receive(v.ctx, 1, "s",
					engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
				if err != nil || len(got) != 1 {
					v.Errorf("got %d messages, %v; want one", len(got), err)
				}
				served <- i
			}()
			v.sleep(0.1)
		}
		if n := v.subStats(1, "s").Waiting; n != 10 {
			v.Fatalf("got %d waiting, want 10", n)
		}
		for want := range 10 {
			v.put(1, "x")
			if got := <-served; got != want {
				v.Fatalf("served caller: got %d, want %d", got, want)
			}
		}
	}},
	{"a caller waiting for one partition does not block another", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.sub(1, "s")
		first, second := make(chan string, 1), make(chan string, 1)
		receive := func(part int32, to chan string) {
			got, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: part})
			if err != nil || len(got) != 1 {
				v.Errorf("got %d messages, %v; want one", len(got), err)
				to <- ""
				return
			}
			to <- string(got[0].Payload)
		}
		go receive(0, first)
		v.sleep(0.1)
		go receive(engine.AllPartitions, second)
		v.sleep(0.1)
		v.putPart(1, 1, "b")
		v.same([]string{<-second}, []string{"b"})
		v.putPart(1, 0, "a")
		v.same([]string{<-first}, []string{"a"})
	}},
	{"a receive stops at its bytes, but returns at least one message", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.put(1, "aaaa", "bbbb", "cccc")
		req := engine.ReceiveRequest{Max: 10, MaxBytes: 9, Partition: engine.AllPartitions}
		got := v.getReq(1, "s", req)
		v.same(payloads(got), []string{"aaaa", "bbbb"})
		req.MaxBytes = 1
		last := v.getReq(1, "s", req)
		v.same(payloads(last), []string{"cccc"})
		if last[0].Redeliveries != 0 {
			v.Fatalf("got %d redeliveries, want 0: it was not delivered before", last[0].Redeliveries)
		}
		v.settle(1, "s", engine.Nack, got[0].ID, got[1].ID, last[0].ID)
		req.MaxBytes = 9
		v.same(payloads(v.getReq(1, "s", req)), []string{"aaaa", "bbbb"})
		if n := v.subStats(1, "s").Redelivered; n != 2 {
			v.Fatalf("got %d redeliveries, want 2", n)
		}
	}},
	{"the bytes of a receive include keys and properties", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		v.putMsg(1, 0, engine.Message{Payload: []byte("a"), Key: "kkkk"})
		v.putMsg(1, 0, engine.Message{Payload: []byte("b"), Properties: []engine.Property{{Key: "pp", Value: "vv"}}})
		v.putMsg(1, 0, engine.Message{Payload: []byte("c")})
		req := engine.ReceiveRequest{Max: 10, MaxBytes: 9, Partition: engine.AllPartitions}
		v.same(payloads(v.getReq(1, "s", req)), []string{"a"})
		v.same(payloads(v.getReq(1, "s", req)), []string{"b", "c"})
	}},
	{"a cancelled caller loses nothing", testCancelledReceive},
	{"delayed messages are delivered when they are due and do not block others", func(v *env) {
		v.needsTime()
		v.topic(1, retainAll)
		v.sub(1, "s")
		now := time.Now()
		due := now.Add(10 * v.tick)
		v.putMsg(1, 0, engine.Message{Payload: []byte("later"), DeliverAt: due.UnixMilli()})
		v.putMsg(1, 0, engine.Message{Payload: []byte("soon"), DeliverAt: now.Add(5 * v.tick).UnixMilli()})
		v.put(1, "now")
		got := v.expect(1, "s", "now")
		v.ack(1, "s", got[0].ID)
		v.expect(1, "s")
		got = v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
		v.same(payloads(got), []string{"soon"})
		if got[0].Redeliveries != 0 {
			v.Fatalf("got %d redeliveries, want 0: a delay is not a delivery", got[0].Redeliveries)
		}
		v.crash()
		v.same(payloads(v.get(1, "s", 10)), []string{"soon"})
		got = v.getReq(1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
		v.same(payloads(got), []string{"later"})
		if time.Now().Before(due.Truncate(time.Millisecond)) {
			v.Fatalf("got the message %v early, want it when it is due", time.Until(due))
		}
	}},
	{"no more messages than the limit are leased", func(v *env) {
		c := retainAll
		c.MaxUnacked = 3
		v.topic(1, c)
		v.sub(1, "s")
		v.put(1, numbered("m", 0, 5)...)
		got := v.expect(1, "s", numbered("m", 0, 3)...)
		v.expect(1, "s")
		next := make(chan []engine.Delivery, 1)
		go func() {
			got, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 1, Wait: v.tick * 5, Partition: engine.AllPartitions})
			if err != nil {
				v.Error(err)
			}
			next <- got
		}()
		v.sleep(0.5)
		v.ack(1, "s", got[1].ID)
		v.same(payloads(<-next), []string{"m3"})
		c.MaxUnacked = 0
		v.ok(v.ConfigureTopic(v.ctx, 1, c))
		v.expect(1, "s", "m4")
	}},
	{"concurrent consumers get each message once", func(v *env) {
		v.topic(1, retainAllParts(3))
		v.sub(1, "s")
		var got sync.Map
		var n atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for n.Load() < 300 {
					ds, err := v.Receive(v.ctx, 1, "s",
						engine.ReceiveRequest{Max: 3, Wait: v.tick, Partition: engine.AllPartitions})
					if err != nil {
						v.Error(err)
						return
					}
					for _, d := range ds {
						if _, twice := got.LoadOrStore(d.ID, true); twice {
							v.Errorf("got %v twice, want it once", d.ID)
						}
						if err := v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: d.ID}}); err != nil {
							v.Error(err)
						}
						n.Add(1)
					}
				}
			})
		}
		for i := range 300 {
			v.putPart(1, int32(i%3), "x")
		}
		wg.Wait()
		if s := v.subStats(1, "s"); s.Backlog != 0 || s.Leased != 0 || s.Redelivered != 0 {
			v.Fatalf("got %+v, want no backlog, and nothing leased or redelivered", s)
		}
	}},
}

// testCancelledReceive cancels callers at the moment when messages arrive: each message reaches
// exactly one caller, and none is delayed until a lease expires.
func testCancelledReceive(v *env) {
	v.topic(1, retainAll)
	v.ok(v.CreateSubscription(v.ctx, 1, "s", engine.SubscriptionConfig{Lease: time.Hour}, engine.Position{}))
	ctx, cancel := context.WithCancel(v.ctx)
	cancel()
	v.put(1, "first")
	_, err := v.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour, Partition: engine.AllPartitions})
	v.want(err, context.Canceled)
	v.ack(1, "s", v.expect(1, "s", "first")[0].ID)
	var received atomic.Int64
	for range 100 {
		ctx, cancel := context.WithCancel(v.ctx)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				got, err := v.Receive(ctx, 1, "s",
					engine.ReceiveRequest{Max: 2, Wait: time.Hour, Partition: engine.AllPartitions})
				if err != nil && !errors.Is(err, context.Canceled) {
					v.Error(err)
				}
				for _, d := range got {
					if d.Redeliveries != 0 {
						v.Errorf("%v: got %d redeliveries, want 0", d.ID, d.Redeliveries)
					}
					received.Add(1)
					if err := v.Settle(v.ctx, 1, "s", []engine.Settlement{{ID: d.ID}}); err != nil {
						v.Error(err)
					}
				}
			})
		}
		next := v.stats(1).Partitions[0].Next
		wg.Go(func() { // cancels at the moment when the message becomes visible
			_, err := v.Read(v.ctx, 1, engine.ReadRequest{From: next, Max: 1, Wait: time.Hour})
			if err != nil {
				v.Error(err)
			}
			cancel()
		})
		v.sleep(0.1)
		v.put(1, "x")
		wg.Wait()
	}
	rest := v.get(1, "s", 1000)
	if total := received.Load() + int64(len(rest)); total != 100 {
		v.Fatalf("got %d messages, want 100", total)
	}
	for _, d := range rest {
		if d.Redeliveries != 0 {
			v.Fatalf("%v: got %d redeliveries, want 0", d.ID, d.Redeliveries)
		}
	}
}
