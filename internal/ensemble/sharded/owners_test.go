package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/remote"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/storage/engine"
)

var retainAll = engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}

// open opens shards in memory, owned by this member or by another one.
func open(t *testing.T, elsewhere bool) *stack {
	t.Helper()
	s := &store{fs: vfs.NewCrashableMem(), elsewhere: elsewhere}
	e, _ := s.Open(t).(*stack)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: got error %v, want none", err)
		}
	})
	return e
}

func put(t *testing.T, e engine.Engine, id engine.TopicID, payload string) engine.MessageID {
	t.Helper()
	out, err := e.Append(t.Context(), id, 0,
		[]engine.Message{{Payload: []byte(payload), SchemaVersion: engine.NoSchema}})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].ID
}

func TestDeadLettersOfAnotherShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := open(t, false)
		for id := range engine.TopicID(2) {
			if err := e.CreateTopic(t.Context(), id+1, retainAll); err != nil {
				t.Fatal(err)
			}
		}
		config := engine.SubscriptionConfig{MaxDeliveries: 1, DeadLetterTopic: 2, Lease: time.Second}
		if err := e.CreateSubscription(t.Context(), 1, "s", config, engine.Position{}); err != nil {
			t.Fatal(err)
		}
		put(t, e, 1, "bad")
		if got, err := e.Receive(t.Context(), 1, "s", engine.ReceiveRequest{Max: 1}); err != nil || len(got) != 1 {
			t.Fatalf("got %v and error %v, want one message", got, err)
		}
		letters, err := e.Read(t.Context(), 2, engine.ReadRequest{Max: 1, Wait: time.Minute})
		if err != nil || len(letters) != 1 || string(letters[0].Payload) != "bad" ||
			letters[0].Properties[0].Value != "1:0:0" {
			t.Fatalf("got letters %+v and error %v, want a copy with its origin", letters, err)
		}
		synctest.Wait()
		stats, err := e.DescribeTopic(t.Context(), 1)
		if err != nil || stats.Subscriptions[0].Backlog != 0 {
			t.Errorf("got %+v and error %v, want no backlog", stats.Subscriptions, err)
		}
	})
}

// TestMessagesForADisconnectedCaller cancels a Receive at another member while messages are in
// transit: they are available again before their leases expire.
func TestMessagesForADisconnectedCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := open(t, true)
		if err := e.CreateTopic(t.Context(), 1, retainAll); err != nil {
			t.Fatal(err)
		}
		if err := e.CreateSubscription(t.Context(), 1, "s", engine.SubscriptionConfig{Lease: time.Hour},
			engine.Position{}); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			type result struct {
				got []engine.Delivery
				err error
			}
			results := make(chan result, 1)
			go func() {
				got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Hour})
				results <- result{got, err}
			}()
			synctest.Wait() // until Receive waits at the owner
			go cancel()
			put(t, e.parts[1], 1, "x")
			r := <-results
			if r.err != nil && !errors.Is(r.err, context.Canceled) {
				t.Fatalf("got error %v, want none or %v", r.err, context.Canceled)
			}
			if len(r.got) == 0 { // then another consumer gets the message immediately
				got, err := e.Receive(t.Context(), 1, "s", engine.ReceiveRequest{Max: 1, Wait: time.Minute})
				if err != nil || len(got) != 1 {
					t.Fatalf("got %v and error %v, want the message", got, err)
				}
				r.got = got
			}
			if err := e.Settle(t.Context(), 1, "s", []engine.Settlement{{ID: r.got[0].ID}}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// movingShard is a shard whose owner changes.
type movingShard struct {
	shard
	at atomic.Pointer[engine.Owner]
}

func (m *movingShard) Owner() engine.Owner { return *m.at.Load() }

func (m *movingShard) Engine() (engine.Engine, error) {
	if m.at.Load().Member != "a" {
		return nil, engine.ErrNotOwner
	}
	return m.shard.owner.engines[m.number], nil
}

func TestCallsWaitForAnOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := open(t, false)
		m := &movingShard{shard: shard{owner: &owner{engines: parts.parts}, number: 0}}
		m.at.Store(&engine.Owner{})
		e := sharded.New(sharded.Options{Cluster: "c", Member: "a", Shards: []sharded.Shard{m}})
		began := time.Now()
		err := e.CreateTopic(t.Context(), 3, retainAll)
		if waited := time.Since(began); !errors.Is(err, engine.ErrNoOwner) || waited < 5*time.Second ||
			waited > 6*time.Second {
			t.Errorf("without an owner: got error %v after %s, want %v after 5s", err, waited, engine.ErrNoOwner)
		}
		ending := sharded.New(sharded.Options{Cluster: "c", Member: "a", Shards: []sharded.Shard{m}})
		time.AfterFunc(time.Second, ending.Leave)
		began = time.Now()
		err = ending.CreateTopic(t.Context(), 3, retainAll)
		if waited := time.Since(began); !errors.Is(err, engine.ErrNoOwner) || waited < 2*time.Second ||
			waited > 3*time.Second {
			t.Errorf("during shutdown: got error %v after %s, want %v after 2s", err, waited, engine.ErrNoOwner)
		}
		time.AfterFunc(2*time.Second, func() { m.at.Store(&engine.Owner{Member: "a", Epoch: 2}) })
		if err := e.CreateTopic(t.Context(), 3, retainAll); err != nil {
			t.Errorf("with an owner after two seconds: got error %v, want none", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// leavingEngine is an engine whose first call fails with err, like a call that is running while
// the owner changes.
type leavingEngine struct {
	engine.Engine
	err   error
	again error // returned by reads after the first
	after time.Duration
	calls int
}

func (l *leavingEngine) fail() error {
	if l.calls++; l.calls > 1 {
		return nil
	}
	time.Sleep(l.after) // on synctest's clock
	return l.err
}

func (l *leavingEngine) Append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	if err := l.fail(); err != nil {
		return nil, err
	}
	return l.Engine.Append(ctx, id, partition, msgs)
}

func (l *leavingEngine) Receive(ctx context.Context, id engine.TopicID, name string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	if err := l.fail(); err != nil {
		return nil, err
	}
	return l.Engine.Receive(ctx, id, name, req)
}

func (l *leavingEngine) ReadBatches(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	if l.calls++; l.calls > 1 {
		if l.again != nil {
			return engine.Extent{}, l.again
		}
		return l.Engine.ReadBatches(ctx, id, partition, from, visit)
	}
	extent, err := l.Engine.ReadBatches(ctx, id, partition, from, func(s *engine.StoredValue) (bool, error) {
		_, err := visit(s)
		return false, err
	})
	return extent, errors.Join(err, l.err)
}

// openSubscribed opens shards with topic 2 and its subscription s.
func openSubscribed(t *testing.T) *stack {
	t.Helper()
	e := open(t, false)
	if err := e.CreateTopic(t.Context(), 2, retainAll); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateSubscription(t.Context(), 2, "s", engine.SubscriptionConfig{}, engine.Position{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// shardWith is a shard with a given engine.
type shardWith struct {
	shard
	engine engine.Engine
}

func (w *shardWith) Engine() (engine.Engine, error) { return w.engine, nil }

// TestCallsAtAnOwnerThatLeaves: a call that had no effect, or is idempotent, is retried at
// the next owner; for other calls the caller gets the error.
func TestCallsAtAnOwnerThatLeaves(t *testing.T) {
	t.Parallel()
	produce := func(ctx context.Context, e engine.Engine) error {
		_, err := e.Append(ctx, 2, 0, []engine.Message{{Payload: []byte("y"), SchemaVersion: engine.NoSchema}})
		return err
	}
	consume := func(ctx context.Context, e engine.Engine) error {
		got, err := e.Receive(ctx, 2, "s", engine.ReceiveRequest{Max: 1, Wait: 3 * time.Second})
		if err == nil && (len(got) != 1 || string(got[0].Payload) != "x") {
			return fmt.Errorf("got %v, want the message", got)
		}
		return err
	}
	for name, c := range map[string]struct {
		call func(context.Context, engine.Engine) error
		err  error
		want error
	}{
		"produce, not begun":     {produce, engine.ErrNotBegun, nil},
		"produce, unknown":       {produce, engine.ErrNotOwner, engine.ErrNotOwner},
		"produce, closed":        {produce, engine.ErrClosed, engine.ErrNotOwner},
		"produce, broken":        {produce, remote.ErrUnreachable, remote.ErrUnreachable},
		"consume, not begun":     {consume, engine.ErrNotBegun, nil},
		"consume, owner changed": {consume, engine.ErrNotOwner, nil},
		"consume, closed":        {consume, engine.ErrClosed, nil},
		"consume, broken":        {consume, remote.ErrUnreachable, remote.ErrUnreachable}, // may count as a delivery
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				parts := openSubscribed(t)
				put(t, parts, 2, "x")
				e := sharded.New(sharded.Options{Cluster: "c", Member: "a", Shards: []sharded.Shard{
					&shardWith{engine: &leavingEngine{Engine: parts, err: c.err}},
				}})
				if err := c.call(t.Context(), e); !errors.Is(err, c.want) {
					t.Errorf("got error %v, want %v", err, c.want)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestWaitingAcrossOwners: a consumer that waits for messages waits at the next owner for
// the rest of its timeout.
func TestWaitingAcrossOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := openSubscribed(t)
		e := sharded.New(sharded.Options{Cluster: "c", Member: "a", Shards: []sharded.Shard{
			&shardWith{engine: &leavingEngine{Engine: parts, err: engine.ErrNotOwner, after: 7 * time.Second}},
		}})
		began := time.Now()
		got, err := e.Receive(t.Context(), 2, "s", engine.ReceiveRequest{Max: 1, Wait: 10 * time.Second})
		if waited := time.Since(began); err != nil || len(got) != 0 || waited < 10*time.Second ||
			waited > 11*time.Second {
			t.Errorf("got %v and error %v after %s, want no message after 10s", got, err, waited)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestReadingAcrossOwners: an interrupted read continues at the next owner and visits no
// entry twice. A read that visit ended is not continued. If the next owner fails, ReadBatches
// returns the extent of the entries visited.
func TestReadingAcrossOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := openSubscribed(t)
		for _, payload := range []string{"x", "y", "z"} {
			put(t, parts, 2, payload)
		}
		read := func(ends, again error) (shown []uint64, extent engine.Extent, err error) {
			e := sharded.New(sharded.Options{Cluster: "c", Member: "a", Shards: []sharded.Shard{
				&shardWith{engine: &leavingEngine{Engine: parts, err: engine.ErrClosed, again: again}},
			}})
			defer e.Close()
			extent, err = e.ReadBatches(t.Context(), 2, 0, 0, func(s *engine.StoredValue) (bool, error) {
				shown = append(shown, s.First)
				return true, ends
			})
			return shown, extent, err
		}
		began := time.Now()
		shown, extent, err := read(nil, nil)
		if waited := time.Since(began); err != nil || !slices.Equal(shown, []uint64{0, 1, 2}) || extent.Next != 3 ||
			waited > time.Second {
			t.Errorf("got %v, %+v and error %v after %s, want three messages within 1s", shown, extent, err, waited)
		}
		ends := errors.New("enough")
		if shown, _, err := read(ends, nil); !errors.Is(err, ends) || len(shown) != 1 {
			t.Errorf("ended by visit: got %v and error %v, want one message and %v", shown, err, ends)
		}
		shown, extent, err = read(nil, engine.ErrNoTopic)
		if !errors.Is(err, engine.ErrNoTopic) || len(shown) != 1 || extent.Next != 3 {
			t.Errorf("the next owner fails: got %v, %+v and error %v, want one message and the first owner's extent",
				shown, extent, err)
		}
	})
}

// selectNone is a selector that passes over every message.
type selectNone struct{}

func (selectNone) Select(_ context.Context, _ time.Duration, _ engine.TopicID, _ string,
	read func(engine.Evaluate) error,
) error {
	return read(func(*engine.Record) engine.Verdict { return engine.PassedOver })
}

func (selectNone) PassedOver(engine.TopicID, int) {}

// TestAcquiredShardsHaveTheSelector: an engine gets the selector when its shard is acquired, before the first call.
func TestAcquiredShardsHaveTheSelector(t *testing.T) {
	t.Parallel()
	e := open(t, false)
	acquired := e.parts[2]
	cluster := sharded.New(sharded.Options{})
	cluster.SelectWith(selectNone{})
	if err := acquired.CreateTopic(t.Context(), 2, retainAll); err != nil {
		t.Fatal(err)
	}
	config := engine.SubscriptionConfig{Filter: "any"}
	if err := acquired.CreateSubscription(t.Context(), 2, "s", config, engine.Position{}); err != nil {
		t.Fatal(err)
	}
	msgs := []engine.Message{{Payload: []byte("x"), SchemaVersion: engine.NoSchema}}
	if _, err := acquired.Append(t.Context(), 2, 0, msgs); err != nil {
		t.Fatal(err)
	}
	if _, err := acquired.Receive(t.Context(), 2, "s", engine.ReceiveRequest{Max: 1}); !errors.Is(err,
		engine.ErrNoSelector) {
		t.Errorf("before: got %v, want %v", err, engine.ErrNoSelector)
	}
	cluster.ShardAcquired(acquired)
	if got, err := acquired.Receive(t.Context(), 2, "s", engine.ReceiveRequest{Max: 1}); err != nil || len(got) != 0 {
		t.Errorf("after: got %d messages, %v, want none", len(got), err)
	}
}
