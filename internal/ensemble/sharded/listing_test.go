package sharded_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"freshet/internal/ensemble/sharded"
	"freshet/internal/storage/engine"
)

// closingEngine is an engine that closes while it lists topics: like the store, it returns the
// topics listed so far together with the error.
type closingEngine struct {
	engine.Engine
	calls int
}

func (c *closingEngine) ListTopics(ctx context.Context, after engine.TopicID, limit int) ([]engine.TopicID, error) {
	ids, err := c.Engine.ListTopics(ctx, after, limit)
	if c.calls++; c.calls == 1 && err == nil {
		return ids[:1], engine.ErrClosed
	}
	return ids, err
}

// TestListAcrossOwners: a list that one owner began and the next owner finished contains
// every topic once.
func TestListAcrossOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := open(t, false)
		for id := range engine.TopicID(3) {
			if err := parts.CreateTopic(t.Context(), id+1, retainAll); err != nil {
				t.Fatal(err)
			}
		}
		e := sharded.New(sharded.Options{Cluster: "c", Member: "a", Shards: []sharded.Shard{
			&shardWith{engine: &closingEngine{Engine: parts}},
		}})
		got, err := e.ListTopics(t.Context(), 0, 3)
		if err != nil || !slices.Equal(got, []engine.TopicID{1, 2, 3}) {
			t.Errorf("got topics %d and error %v, want 1, 2 and 3", got, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
