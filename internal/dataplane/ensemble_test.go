package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/remote"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
	"freshet/test/poll"
)

// loopback is an ensemble in one process: shards are stores that one member at a time has
// open, and the journals are in another store.
type loopback struct {
	t        *testing.T
	dir      string
	journals *pebble.Engine
	planes   map[string]*dataplane.Plane
	servers  map[string]*httptest.Server

	broken error // returned when a journal is opened

	mu     sync.Mutex
	shards map[int]*loopbackShard
}

type loopbackShard struct {
	engine *pebble.Engine
	owner  engine.Owner
	opened map[string]dataplane.ShardOptions // by member
}

type loopbackMember struct {
	*loopback
	name string
}

func newLoopback(t *testing.T, members ...string) *loopback {
	t.Helper()
	l := &loopback{
		t: t, dir: t.TempDir(), planes: map[string]*dataplane.Plane{}, servers: map[string]*httptest.Server{},
		shards: map[int]*loopbackShard{},
	}
	var err error
	if l.journals, err = pebble.Open(t.TempDir(), pebble.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range members {
			if err := l.planes[name].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		for _, s := range l.shards {
			if s.engine != nil {
				_ = s.engine.Close()
			}
		}
		if err := l.journals.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	for _, name := range members {
		plane, err := dataplane.OpenMember(dataplane.Options{
			Dir: t.TempDir(), Domain: "freshet.localhost", Logger: slog.New(slog.DiscardHandler),
		}, &loopbackMember{l, name})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(remote.NewServer(plane, slog.New(slog.DiscardHandler)))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		l.planes[name], l.servers[name] = plane, server
	}
	return l
}

func (m *loopbackMember) Self() string { return m.name }
func (m *loopbackMember) Members() int { return len(m.planes) }

func (m *loopbackMember) Remote() *remote.Client {
	return &remote.Client{Peers: m}
}

// Call implements remote.Peers.
func (m *loopbackMember) Call(name string) (via *http.Client, url string, err error) {
	return m.servers[name].Client(), m.servers[name].URL, nil
}

func (m *loopbackMember) Shards(_ context.Context, _ string, wanted int) (int, error) {
	return wanted, nil
}

func (m *loopbackMember) Journals(context.Context, string) (dataplane.Journals, error) {
	return sharedJournals{m.journals, m.broken}, nil
}

type sharedJournals struct {
	*pebble.Engine
	broken error
}

func (j sharedJournals) Journal(ctx context.Context, name string) (engine.Journal, error) {
	if j.broken != nil {
		return nil, j.broken
	}
	return j.Engine.Journal(ctx, name)
}

func (j sharedJournals) Lost() error { return j.broken }

func (sharedJournals) Close() {}

func (sharedJournals) Names(context.Context) ([]string, error) {
	return []string{"messaging", "schemas"}, nil
}

// TestJournalsThatCannotBeOpened: opening a cluster whose journals cannot be opened fails
// and can be retried.
func TestJournalsThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	l := newLoopback(t, "a")
	l.broken = errors.New("log does not respond")
	if err := l.planes["a"].Open(t.Context(), spec("acme", "c")); !errors.Is(err, l.broken) {
		t.Errorf("got error %v, want %v", err, l.broken)
	}
	if _, err := l.planes["a"].FindNamed("acme", "c"); !errors.Is(err, engine.ErrOpening) {
		t.Errorf("clients get the error %v, want %v, because opening is retried", err, engine.ErrOpening)
	}
	l.broken = nil
	if err := l.planes["a"].Open(t.Context(), spec("acme", "c")); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

func (m *loopbackMember) OpenShard(_ context.Context, o dataplane.ShardOptions) (dataplane.EnsembleShard, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shards[o.Number]
	if s == nil {
		s = &loopbackShard{opened: map[string]dataplane.ShardOptions{}}
		m.shards[o.Number] = s
	}
	s.opened[o.Cluster+m.name] = o
	s.opened[m.name] = o
	return &memberShard{m, s}, nil
}

// memberShard is one member's view of a shard.
type memberShard struct {
	*loopbackMember
	shard *loopbackShard
}

func (s *memberShard) Engine() (engine.Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shard.owner.Member != s.name {
		return nil, engine.ErrNotOwner
	}
	return s.shard.engine, nil
}

func (s *memberShard) Owner() engine.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shard.owner
}

func (s *memberShard) Health() error                            { return nil }
func (s *memberShard) Checkpoint(context.Context, string) error { return nil }
func (s *memberShard) HandOver(context.Context) error           { return nil }
func (s *memberShard) SetCopies(int)                            {}
func (s *memberShard) Close() error                             { return nil }
func (s *memberShard) Status() provision.Shard                  { return provision.Shard{} }

// move gives a shard to a member: it closes the old owner's engine and opens the new one's.
func (l *loopback) move(number int, to string) {
	l.t.Helper()
	l.mu.Lock()
	s := l.shards[number]
	before, old := s.owner, s.engine
	s.owner = engine.Owner{Epoch: before.Epoch}
	l.mu.Unlock()
	if old != nil {
		s.opened[before.Member].Ownership.Lost()
		if err := old.Close(); err != nil {
			l.t.Fatal(err)
		}
	}
	next, err := pebble.Open(fmt.Sprintf("%s/%d", l.dir, number), s.opened[to].Store)
	if err != nil {
		l.t.Fatal(err)
	}
	s.opened[to].Ownership.Acquired(next)
	l.mu.Lock()
	s.engine, s.owner = next, engine.Owner{Member: to, Epoch: before.Epoch + 1}
	l.mu.Unlock()
}

// cluster opens a cluster on all members and distributes its shards over them.
func (l *loopback) cluster(t *testing.T, shards int, members ...string) map[string]*dataplane.Cluster {
	t.Helper()
	s := spec("acme", "c")
	s.Custom = map[string]string{"shards": fmt.Sprint(shards)}
	for _, name := range members {
		if err := l.planes[name].Open(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range shards {
		l.move(i, members[i%len(members)])
	}
	open := map[string]*dataplane.Cluster{}
	for _, name := range members {
		if err := l.planes[name].Provision(t.Context(), s, ignore); err != nil {
			t.Fatal(err)
		}
		c, err := l.planes[name].Find(s.Host)
		if err != nil {
			t.Fatal(err)
		}
		open[name] = c
	}
	return open
}

func TestAnyMemberServesAnyTopic(t *testing.T) {
	t.Parallel()
	l := newLoopback(t, "a", "b")
	at := l.cluster(t, 4, "a", "b")
	ctx := t.Context()
	for i := range 8 { // on all shards, and from both members
		name := topic(t, fmt.Sprint("persistent://public/default/t", i))
		here, there := at["a"].Broker, at["b"].Broker
		if i%2 == 1 {
			here, there = there, here
		}
		if err := here.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{}); err != nil {
			t.Fatal(err)
		}
		if err := there.Consumer.Subscribe(ctx, name, "s", messaging.Position{}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Producer.Produce(ctx, name,
			&messaging.Message{Payload: []byte("x"), SchemaVersion: engine.NoSchema}); err != nil {
			t.Fatal(err)
		}
		got, err := there.Consumer.Receive(ctx, name, "s", messaging.ReceiveOptions{Wait: time.Minute})
		if err != nil || len(got) != 1 {
			t.Fatalf("got %v and error %v, want one message", got, err)
		}
		if err := here.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: got[0].ID}); err != nil {
			t.Fatal(err)
		}
		stats, err := there.Statistics.Stats(ctx, name)
		if err != nil || stats.Subscriptions[0].Backlog != 0 {
			t.Errorf("got %+v and error %v, want no backlog", stats.Subscriptions, err)
		}
	}
}

func TestDeadLetterTopicsAreInTheShardOfTheirSource(t *testing.T) {
	t.Parallel()
	l := newLoopback(t, "a")
	b := l.cluster(t, 5, "a")["a"].Broker
	for i := range 6 {
		name := topic(t, fmt.Sprint("persistent://public/default/t", i))
		properties := map[string]string{messaging.PropertyMaxRedeliver: "1"}
		if err := b.Consumer.Subscribe(t.Context(), name, "s", messaging.Position{}, properties); err != nil {
			t.Fatal(err)
		}
		source, _ := b.Catalogue.Topic(t.Context(), name)
		letters, err := b.Catalogue.Topic(t.Context(),
			topic(t, fmt.Sprint("persistent://public/default/t", i, "-s-DLQ")))
		if err != nil || source.ID%5 != letters.ID%5 {
			t.Errorf("got ids %d and %d and error %v, want both in one shard of five", source.ID, letters.ID, err)
		}
	}
}

func TestANewOwnerIsReconciledWithTheCatalogue(t *testing.T) {
	t.Parallel()
	l := newLoopback(t, "a", "b")
	at := l.cluster(t, 1, "a", "b")
	ctx, name := t.Context(), topic(t, "persistent://public/default/t")
	if err := at["b"].Broker.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{}); err != nil {
		t.Fatal(err)
	}
	stream, err := at["a"].Broker.Consumer.OpenPushConsumer(ctx, subscribed(t, at["a"].Broker, name), "s",
		messaging.PushConsumerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A topic that exists in the store only was deleted in the catalogue.
	if err := l.shards[0].engine.CreateTopic(ctx, 77, engine.TopicConfig{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	l.move(0, "b")
	if _, err := stream.Next(ctx, time.Minute); !errors.Is(err, messaging.ErrClosing) {
		t.Errorf("stream at the old owner: got error %v, want %v", err, messaging.ErrClosing)
	}
	eventually(t, "the deleted topic removed", func() bool {
		_, err := l.shards[0].engine.DescribeTopic(ctx, 77)
		return errors.Is(err, engine.ErrNoTopic)
	})
	if _, err := at["a"].Broker.Producer.Produce(ctx, name,
		&messaging.Message{Payload: []byte("x"), SchemaVersion: engine.NoSchema}); err != nil {
		t.Errorf("producing at the old owner: got error %v, want none", err)
	}
}

func subscribed(t *testing.T, b *messaging.Broker, name names.Topic) names.Topic {
	t.Helper()
	if err := b.Consumer.Subscribe(t.Context(), name, "s", messaging.Position{}, nil); err != nil {
		t.Fatal(err)
	}
	return name
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	poll.Until(t, 10*time.Second, what, is)
}

func TestConsumerGroupsFollowTheirShard(t *testing.T) {
	t.Parallel()
	l := newLoopback(t, "a", "b")
	at := l.cluster(t, 2, "a", "b")
	coordinators := map[string]*groups.Coordinator{}
	for name, c := range at {
		opened, err := c.Groups(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		coordinators[name] = opened
	}
	key := groups.Key{Tenant: "public", Group: "g"}
	owner, other := "a", "b"
	if groups.JournalOf(key)%2 == 1 {
		owner, other = other, owner
	}
	commit := &groups.CommitRequest{
		Generation: -1,
		Offsets:    map[groups.Partition]groups.Offset{groups.PartitionOf(1, 0): {Offset: 7}},
	}
	if err := coordinators[other].Commit(t.Context(), key, commit); !errors.Is(err, groups.ErrNotCoordinator) {
		t.Errorf("at the wrong member: got error %v, want %v", err, groups.ErrNotCoordinator)
	}
	if err := coordinators[owner].Commit(t.Context(), key, commit); err != nil {
		t.Fatal(err)
	}
	l.move(groups.JournalOf(key)%2, other)
	if _, err := coordinators[owner].Committed(key); !errors.Is(err, groups.ErrNotCoordinator) {
		t.Errorf("at the old owner: got error %v, want %v", err, groups.ErrNotCoordinator)
	}
	var committed groups.Committed
	eventually(t, "the new owner coordinating", func() bool {
		var err error
		committed, err = coordinators[other].Committed(key)
		return err == nil
	})
	if got, ok := committed.Offset(groups.PartitionOf(1, 0)); !ok || got.Offset != 7 {
		t.Errorf("got offset %+v, want the committed one", got)
	}
	first, err := coordinators["a"].ProducerID(t.Context(), "acme/worker")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := coordinators["b"].ProducerID(t.Context(), "acme/worker"); err != nil || first == second {
		t.Errorf("got producer ids %d and %d and error %v, want different ones", first, second, err)
	}
	for name, c := range coordinators {
		owner, issued, err := c.ProducerOwner(t.Context(), first)
		if owner != "acme/worker" || !issued || err != nil {
			t.Errorf("member %s: got %q, %v, %v for an issued id; want its account", name, owner, issued, err)
		}
		if _, issued, err := c.ProducerOwner(t.Context(), 1<<40); issued || err != nil {
			t.Errorf("member %s: got %v, %v for an id that was not issued", name, issued, err)
		}
	}
}
