package enginetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"freshet/internal/storage/engine"
)

var durabilityTests = []testCase{
	{"writes whose calls returned survive a crash", func(v *env) {
		v.topic(1, retainAllParts(2))
		v.sub(1, "s")
		want := []string{}
		for i := range 30 {
			p := fmt.Sprint("m", i)
			want = append(want, p)
			v.put(1, p)
			if i%10 == 9 {
				v.crash()
				v.same(v.read(1, 0), want)
			}
		}
		got := v.get(1, "s", 100)
		v.ack(1, "s", got[3].ID, got[17].ID)
		v.crash()
		want = append(append(append([]string{}, want[:3]...), want[4:17]...), want[18:]...)
		v.expect(1, "s", want...)
	}},
	{"messages that were read before a crash survive it", func(v *env) {
		v.topic(1, retainAll)
		v.sub(1, "s")
		for round := range 10 {
			var stop atomic.Bool
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i := 0; !stop.Load(); i++ {
						if _, err := v.Append(v.ctx, 1, 0,
							[]engine.Message{{Payload: fmt.Appendf(nil, "%d/%d/%d", round, w, i)}}); err != nil {
							v.Errorf("append: got error %v, want none", err)
							return
						}
					}
				})
			}
			var seen []engine.Record
			for len(seen) < 20 {
				records, err := v.Read(v.ctx, 1,
					engine.ReadRequest{Max: 100, From: v.stats(1).Partitions[0].Next, Wait: v.tick})
				v.ok(err)
				seen = append(seen, records...)
			}
			stop.Store(true)
			wg.Wait()
			v.crash()
			for _, r := range seen {
				got, err := v.Read(v.ctx, 1, engine.ReadRequest{Max: 1, From: r.ID.Entry})
				v.ok(err)
				if len(got) != 1 || string(got[0].Payload) != string(r.Payload) || got[0].PublishTime != r.PublishTime {
					v.Fatalf("%v: got %v after the crash, want %s", r.ID, got, r.Payload)
				}
			}
		}
	}},
	{"every kind of change survives a crash immediately after it", func(v *env) {
		v.topic(1, retainAll)
		v.crash()
		v.sub(1, "s")
		v.crash()
		ids := v.put(1, "a", "b")
		v.crash()
		v.ack(1, "s", ids[0])
		v.crash()
		v.expect(1, "s", "b")
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.Earliest}))
		v.crash()
		v.expect(1, "s", "a", "b")
		v.settle(1, "s", engine.AckTo, ids[1])
		v.crash()
		v.expect(1, "s")
		v.ok(v.DeleteSubscription(v.ctx, 1, "s"))
		v.crash()
		_, err := v.Receive(v.ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: 0})
		v.want(err, engine.ErrNoSubscription)
		v.ok(v.DeleteTopic(v.ctx, 1))
		v.crash()
		_, err = v.DescribeTopic(v.ctx, 1)
		v.want(err, engine.ErrNoTopic)
		j, err := v.Journal(v.ctx, "j")
		v.ok(err)
		_, err = j.Append(v.ctx, 0, []byte("x"))
		v.ok(err)
		v.crash()
		j, err = v.Journal(v.ctx, "j")
		v.ok(err)
		if last, err := j.Last(v.ctx); last != 1 || err != nil {
			v.Fatalf("end of the journal: got %d, %v; want 1", last, err)
		}
	}},
}
