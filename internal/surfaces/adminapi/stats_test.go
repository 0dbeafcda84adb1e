package adminapi_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/pipeline"
)

// unreachable is an engine that can fail to configure topics, like an engine whose owner
// cannot be reached.
type unreachable struct {
	engine.Engine
	on bool
}

var errUnreachable = errors.New("owner cannot be reached")

func (u *unreachable) ConfigureTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	if u.on {
		return errUnreachable
	}
	return u.Engine.ConfigureTopic(ctx, id, config)
}

// TestStatsWhileATopicGrows: a partition that the engine has not created yet has empty
// statistics, not those of the whole topic.
func TestStatsWhileATopicGrows(t *testing.T) {
	t.Parallel()
	real, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	eng := &unreachable{Engine: real}
	broker, err := messaging.Open(t.Context(), eng, messaging.Options{Logger: brokertest.DiscardLogger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	w := newHarness(t, messaging.Options{})
	api := adminapi.New(adminapi.Options{
		Options:  pipeline.Options{Authenticator: w.Identity.Verifier, Authorizer: w.Policy, Auditor: w.Log},
		Resolver: brokertest.Resolver(broker), Accounts: w.Identity.Directory,
	})
	w.Server = httptest.NewServer(web.Middleware(api, brokertest.DiscardLogger, nil))
	t.Cleanup(w.Server.Close)

	ctx, name := t.Context(), names.Topic{Namespace: names.PublicDefault, Local: "p"}
	err = errors.Join(
		broker.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{Partitions: 1}),
		broker.Consumer.Subscribe(ctx, name, "s", messaging.Position{Kind: messaging.Earliest}, nil),
	)
	for range 3 {
		message := &messaging.Message{Payload: []byte("x"), SchemaVersion: messaging.NoSchema}
		_, failed := broker.Producer.Produce(ctx, name, message)
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	eng.on = true
	if err := broker.Catalogue.GrowTopic(ctx, name, 2); !errors.Is(err, errUnreachable) {
		t.Fatalf("got error %v, want %v", err, errUnreachable)
	}

	const path = "/admin/v2/persistent/public/default/p"
	type stats struct {
		StorageSize   int64
		Subscriptions map[string]struct{ MsgBacklog, BacklogSize int64 }
	}
	var whole struct{ Partitions map[string]stats }
	w.Call("GET", path+"/partitioned-stats", "").WantStatus(200).Decode(&whole)
	var one stats
	w.Call("GET", path+"-partition-1/stats", "").WantStatus(200).Decode(&one)
	for _, got := range []stats{whole.Partitions["persistent://public/default/p-partition-1"], one} {
		s, ok := got.Subscriptions["s"]
		if !ok || got.StorageSize != 0 || s.MsgBacklog != 0 || s.BacklogSize != 0 {
			t.Errorf("partition 1: got %+v, want no messages", got)
		}
	}
	s := whole.Partitions["persistent://public/default/p-partition-0"]
	if s.StorageSize == 0 || s.Subscriptions["s"].MsgBacklog != 3 {
		t.Errorf("partition 0: got %+v, want 3 messages", s)
	}
	var internal struct {
		NumberOfEntries int64
		Cursors         map[string]struct{ MessagesConsumedCounter int64 }
	}
	w.Call("GET", path+"-partition-1/internalStats", "").WantStatus(200).Decode(&internal)
	if internal.NumberOfEntries != 0 || len(internal.Cursors) != 1 {
		t.Errorf("internal statistics: got %+v, want no entries and one cursor", internal)
	}
}
