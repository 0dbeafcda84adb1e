package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/engine"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		e, err := OpenMemory()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := e.CreateTopic(ctx, 1, engine.TopicConfig{Partitions: 2, RetainAge: -1, RetainBytes: -1}); err != nil {
			t.Fatal(err)
		}
		if err := e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{Kind: engine.Earliest}); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := e.Append(ctx, 1, int32(i%2), []engine.Message{{Payload: fmt.Appendf(nil, "m%d", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 20, Partition: engine.AllPartitions})
		if err != nil || len(got) != 10 {
			t.Fatal(len(got), err)
		}
		if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[3].ID}, {ID: got[0].ID}}); err != nil {
			t.Fatal(err)
		}
		st, err := e.DescribeTopic(ctx, 1)
		t.Logf("%+v %v", st, err)
		go func() {
			_, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("late")}})
			if err != nil {
				t.Error(err)
			}
		}()
		got, err = e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 20, Wait: time.Second, Partition: engine.AllPartitions})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		got, err = e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 20, Wait: time.Minute, Partition: engine.AllPartitions})
		if err != nil || len(got) != 9-1+0 && len(got) == 0 {
			t.Fatal(len(got), err)
		}
		t.Log(len(got), got[0].Redeliveries)
		j, err := e.Journal(ctx, "cat")
		if err != nil {
			t.Fatal(err)
		}
		if last, err := j.Append(ctx, 0, []byte("a"), []byte("b")); err != nil || last != 2 {
			t.Fatal(last, err)
		}
		if _, err := j.Append(ctx, 1, []byte("a")); !errors.Is(err, engine.ErrConflict) {
			t.Fatal(err)
		}
		if err := j.SaveSnapshot(ctx, 1, func(w io.Writer) error { _, err := w.Write(make([]byte, 1<<20)); return err }); err != nil {
			t.Fatal(err)
		}
		pos, r, err := j.LoadSnapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		t.Log(pos, len(b), err)
		if last, err := j.Replay(ctx, 1, func(p uint64, r []byte) error { t.Log(p, string(r)); return nil }); err != nil || last != 2 {
			t.Fatal(last, err)
		}
	})
}
