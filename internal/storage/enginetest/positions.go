package enginetest

import (
	"time"

	"freshet/internal/storage/engine"
)

// positionTopic creates a topic with ten messages on two partitions, a tick apart, and returns
// their ids and the time just before each.
func positionTopic(v *env) (ids []engine.MessageID, times []time.Time) {
	v.topic(1, retainAllParts(2))
	for i, p := range numbered("m", 0, 10) {
		v.sleep(1)
		times = append(times, time.Now())
		ids = append(ids, v.putPart(1, int32(i%2), p)...)
	}
	v.sleep(1)
	return ids, times
}

// drain receives everything and sorts it by publish time.
func drain(v *env, name string) []string {
	v.Helper()
	byTime := map[int64]string{}
	var order []int64
	for {
		ds := v.get(1, name, 100)
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			byTime[d.PublishTime] = string(d.Payload)
			order = append(order, d.PublishTime)
		}
	}
	for i := range order {
		for k := i; k > 0 && order[k] < order[k-1]; k-- {
			order[k], order[k-1] = order[k-1], order[k]
		}
	}
	out := []string{}
	for _, at := range order {
		out = append(out, byTime[at])
	}
	return out
}

var positionTests = []testCase{
	{"a subscription starts at the requested position", func(v *env) {
		ids, times := positionTopic(v)
		for name, c := range map[string]struct {
			at   engine.Position
			want []string
		}{
			"earliest": {engine.Position{Kind: engine.Earliest}, numbered("m", 0, 10)},
			"latest":   {engine.Position{Kind: engine.Latest}, []string{}},
			"at id": {
				engine.Position{Kind: engine.AtID, ID: ids[4]},
				[]string{"m1", "m3", "m4", "m5", "m6", "m7", "m8", "m9"},
			},
			"after id": {
				engine.Position{Kind: engine.AfterID, ID: ids[4]},
				[]string{"m1", "m3", "m5", "m6", "m7", "m8", "m9"},
			},
			"at time":    {engine.Position{Kind: engine.AtTime, Time: times[5]}, numbered("m", 5, 10)},
			"before all": {engine.Position{Kind: engine.AtTime, Time: times[0].Add(-time.Hour)}, numbered("m", 0, 10)},
			"behind all": {engine.Position{Kind: engine.AtTime, Time: time.Now().Add(time.Hour)}, []string{}},
			"at a far id": {engine.Position{
				Kind: engine.AtID,
				ID:   engine.MessageID{Topic: 1, Partition: 1, Entry: 1 << 60},
			}, []string{"m0", "m2", "m4", "m6", "m8"}},
			"after the end": {
				engine.Position{
					Kind: engine.AfterID,
					ID:   engine.MessageID{Topic: 1, Partition: 1, Entry: ^uint64(0)},
				},
				[]string{"m0", "m2", "m4", "m6", "m8"},
			},
		} {
			v.subAt(1, name, c.at)
			if got := drain(v, name); len(got) != len(c.want) {
				v.Errorf("%s: got %v, want %v", name, got, c.want)
			} else {
				v.same(got, c.want)
			}
		}
		v.want(v.CreateSubscription(v.ctx, 1, "x", engine.SubscriptionConfig{},
			engine.Position{Kind: engine.AtID, ID: engine.MessageID{Topic: 2}}), engine.ErrForeignID)
		v.want(v.CreateSubscription(v.ctx, 1, "x", engine.SubscriptionConfig{},
			engine.Position{Kind: engine.AtID, ID: engine.MessageID{Topic: 1, Partition: 2}}), engine.ErrNoPartition)
		v.want(v.CreateSubscription(v.ctx, 1, "x", engine.SubscriptionConfig{}, engine.Position{Kind: engine.SkipN}),
			engine.ErrInvalid)
		v.crash()
		v.same(drain(v, "at time"), numbered("m", 5, 10))
	}},
	{"a reset moves in both directions and discards leases and acknowledgements", func(v *env) {
		ids, times := positionTopic(v)
		v.sub(1, "s")
		got := v.get(1, "s", 10)
		v.ack(1, "s", got[0].ID, got[7].ID, got[8].ID)
		reset := func(at engine.Position, want ...string) {
			v.Helper()
			v.ok(v.ResetSubscription(v.ctx, 1, "s", at))
			s := v.subStats(1, "s")
			if int(s.Backlog) != len(want) || s.Leased != 0 || (s.BacklogBytes == 0) != (len(want) == 0) {
				v.Fatalf("got %+v, want a backlog of %d and nothing leased", s, len(want))
			}
			v.same(drain(v, "s"), want)
		}
		reset(engine.Position{Kind: engine.Earliest}, numbered("m", 0, 10)...)
		v.crash() // discarded acknowledgements are not restored
		v.same(drain(v, "s"), numbered("m", 0, 10))
		reset(engine.Position{Kind: engine.AtTime, Time: times[8]}, "m8", "m9")
		reset(engine.Position{Kind: engine.Latest})
		reset(engine.Position{Kind: engine.AtTime, Time: times[3]}, numbered("m", 3, 10)...)
		v.ack(1, "s", ids[9])
		v.crash()
		reset(engine.Position{Kind: engine.AtTime, Time: times[7]}, "m7", "m8", "m9")
		v.want(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.AtID, ID: engine.MessageID{Topic: 9}}),
			engine.ErrForeignID)
	}},
	{"a reset to an id moves only its partition", func(v *env) {
		ids, _ := positionTopic(v)
		v.sub(1, "s")
		v.same(drain(v, "s"), numbered("m", 0, 10))
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.AtID, ID: ids[6]}))
		v.same(drain(v, "s"), []string{"m6", "m8"})
		s := v.subStats(1, "s")
		if s.Cursors[0].Floor != 3 || s.Cursors[1].Floor != 0 || s.Leased != 7 {
			v.Fatalf("got %+v, want floors 3 and 0 and 7 leased", s)
		}
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.AfterID, ID: ids[7]}))
		v.same(drain(v, "s"), []string{"m9"})
	}},
	{"a reset serves a waiting caller", func(v *env) {
		positionTopic(v)
		v.subAt(1, "s", engine.Position{Kind: engine.Latest})
		got := make(chan int, 1)
		go func() {
			ds, err := v.Receive(v.ctx, 1, "s",
				engine.ReceiveRequest{Max: 100, Wait: time.Hour, Partition: engine.AllPartitions})
			if err != nil {
				v.Error(err)
			}
			got <- len(ds)
		}()
		v.sleep(0.5)
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.Earliest}))
		if n := <-got; n != 10 {
			v.Fatalf("got %d messages, want 10", n)
		}
	}},
	{"skipping settles the oldest messages and keeps the others", func(v *env) {
		ids, times := positionTopic(v)
		v.sub(1, "s")
		v.ack(1, "s", ids[1], ids[6])
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.SkipN, Count: 3})) // m0 m2 m3
		if s := v.subStats(1, "s"); s.Backlog != 5 {
			v.Fatalf("got %+v, want a backlog of 5", s)
		}
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.SkipTime, Time: times[5]})) // m4
		// A reset with SkipTime never moves backwards.
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.SkipTime, Time: times[2]}))
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.SkipN, Count: 0}))
		v.crash()
		v.same(drain(v, "s"), []string{"m5", "m7", "m8", "m9"})
		v.ok(v.ResetSubscription(v.ctx, 1, "s", engine.Position{Kind: engine.SkipN, Count: 1 << 40}))
		if s := v.subStats(1, "s"); s.Backlog != 0 || s.BacklogBytes != 0 || s.Leased != 0 {
			v.Fatalf("got %+v, want no backlog and nothing leased", s)
		}
	}},
}
