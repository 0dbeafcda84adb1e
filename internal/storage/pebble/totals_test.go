package pebble

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// wantTotals compares the totals with the expected ones. It loads no topics.
func wantTotals(t *testing.T, e *Engine, when string, want engine.Totals) {
	t.Helper()
	if got := e.Totals(); got != want {
		t.Errorf("%s: got totals %+v, want %+v", when, got, want)
	}
}

// described computes the totals from the descriptions of all topics, which loads them.
func described(t *testing.T, e *Engine) (sum engine.Totals) {
	t.Helper()
	ids, err := e.ListTopics(context.Background(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		stats, err := e.DescribeTopic(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		sum.Subscriptions += int64(len(stats.Subscriptions))
		for _, p := range stats.Partitions {
			sum.Stored += p.Bytes
		}
	}
	return sum
}

// TestTotals follows the totals through appends, trimming, unloading, a restart
// and deletions.
func TestTotals(t *testing.T) {
	t.Parallel()
	for _, requested := range []bool{true, false} { // whether Totals is called from the start
		t.Run(fmt.Sprintf("requested from the start %v", requested), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { followTotals(t, requested) })
		})
	}
}

func followTotals(t *testing.T, requested bool) {
	ctx, fs := context.Background(), vfs.NewMem()
	e, err := Open("store", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if requested {
		wantTotals(t, e, "new", engine.Totals{})
	}
	for id := engine.TopicID(1); id <= 30; id++ {
		err = errors.Join(err, e.CreateTopic(ctx, id, engine.TopicConfig{Partitions: 2}))
		if id > 20 {
			continue // these topics are not used
		}
		err = errors.Join(err, e.CreateSubscription(ctx, id, "s", engine.SubscriptionConfig{}, engine.Position{}))
		_, failed := e.Append(ctx, id, 1, []engine.Message{{Payload: make([]byte, 100)}, {Payload: make([]byte, 100)}})
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, e.DeleteSubscription(ctx, 20, "s")) // its messages can be trimmed then
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // for the trimmer
	full := described(t, e)
	if full.Stored < 19*200 || full.Stored >= 20*200+20*100 || full.Subscriptions != 19 {
		t.Fatalf("descriptions of the topics: got %+v, want the messages of 19 topics", full)
	}
	wantTotals(t, e, "produced", full)
	time.Sleep(30 * time.Minute)
	if n := e.topics.loaded(); n != 0 {
		t.Fatalf("loaded topics: got %d, want none", n)
	}
	wantTotals(t, e, "out of memory", full)
	if got := described(t, e); got != full {
		t.Errorf("loaded again: got %+v, want %+v", got, full)
	}
	wantTotals(t, e, "loaded again", full)
	if e = reopened(t, e, fs); true {
		defer e.Close()
	}
	if err := e.DeleteTopic(ctx, 1); err != nil { // before anything was counted
		t.Fatal(err)
	}
	e.Totals()
	time.Sleep(time.Second) // for the survey
	left := engine.Totals{Stored: full.Stored - full.Stored/19, Subscriptions: 18}
	wantTotals(t, e, "after a restart and a deletion", left)
	if got := described(t, e); got != left {
		t.Errorf("after a restart and a deletion: descriptions of the topics: got %+v, want %+v", got, left)
	}
	wantTotals(t, e, "all loaded", left)
	for id := engine.TopicID(2); id <= 30; id++ {
		if err := e.DeleteTopic(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	wantTotals(t, e, "deleted", engine.Totals{})
}

func reopened(t *testing.T, e *Engine, fs vfs.FS) *Engine {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open("store", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return again
}
