package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ops/quota"
	"freshet/internal/registry/schemas"
	"freshet/internal/storage/engine"
	"freshet/test/poll"
	"freshet/test/tally"
)

func limited(t *testing.T, dir string, limits quota.Limits) (*dataplane.Plane, *quota.Organizations) {
	t.Helper()
	book := quota.New(limits, nil)
	p, err := dataplane.Open(dataplane.Options{Dir: dir, Quotas: book, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p, book
}

// race makes concurrent calls and returns the number of successful ones. A failed call must
// fail because of a quota.
func race(t *testing.T, attempts int, call func(i int) error) int {
	t.Helper()
	var succeeded atomic.Int64
	var workers sync.WaitGroup
	next := make(chan int)
	for range 32 {
		workers.Go(func() {
			for i := range next {
				switch err := call(i); {
				case err == nil:
					succeeded.Add(1)
				case errs.KindOf(err) != errs.Exhausted:
					t.Errorf("attempt %d: %v", i, err)
				}
			}
		})
	}
	for i := range attempts {
		next <- i
	}
	close(next)
	workers.Wait()
	return int(succeeded.Load())
}

// TestDisksLimitACluster checks that the size of a cluster's disks limits what it stores, that a
// smaller size rejects only what adds to the data, and that the smaller of
// the disks and quota.storedBytes applies.
func TestDisksLimitACluster(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, book := limited(t, t.TempDir(), quota.Limits{})
	small := spec("acme", "a")
	small.StoredBytes = 4 << 10
	c := running(t, p, small)
	name := topic(t, "persistent://public/default/full")
	produce := func() error {
		_, err := c.Broker.Producer.Produce(ctx, name,
			&messaging.Message{Payload: make([]byte, 1000), SchemaVersion: engine.NoSchema})
		return err
	}
	if err := c.Broker.Consumer.Subscribe(ctx, name, "s", messaging.Position{}, nil); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := produce(); err != nil {
			t.Fatal(err)
		}
	}
	if err := produce(); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("message beyond the disks: got %v, want an exceeded quota", err)
	}
	small.StoredBytes = 1 << 10 // less than what is stored
	running(t, p, small)
	if err := produce(); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("message after the disks shrank: got %v, want an exceeded quota", err)
	}
	if used := book.Organization("acme").Clusters()[0].Used(quota.StoredBytes); used < 4000 {
		t.Errorf("stored bytes after the disks shrank: got %d, want all of them", used)
	}
	small.StoredBytes, small.Custom = 1<<30, map[string]string{"quota.storedBytes": "1Ki"}
	running(t, p, small)
	if err := produce(); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("message beyond quota.storedBytes: got %v, want an exceeded quota", err)
	}
	small.Custom = nil
	running(t, p, small)
	if err := produce(); err != nil {
		t.Errorf("message after the disks have grown: got %v, want no error", err)
	}
	small.MemoryBytes = 999
	running(t, p, small)
	if err := produce(); !errors.Is(err, quota.ErrBuffersFull) {
		t.Errorf("message larger than the memory: got %v, want %v", err, quota.ErrBuffersFull)
	}
}

var atRest = quota.Limits{
	quota.Topics: 60, quota.Subscriptions: 25, quota.Subjects: 20, quota.SchemaBytes: 4 << 10,
	quota.StoredBytes: 64 << 10,
}

// TestAttackQuotas makes one organization use as much as it can of two clusters, while
// another organization keeps working.
func TestAttackQuotas(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	p, book := limited(t, dir, atRest)
	mine := []*dataplane.Cluster{running(t, p, spec("acme", "a")), running(t, p, spec("acme", "b"))}
	victim := running(t, p, spec("globex", "c"))
	attempts := 0
	attack := func(r quota.Resource, n int, call func(i int, c *dataplane.Cluster) error) {
		t.Helper()
		race(t, n, func(i int) error {
			if i%10 == 0 {
				if err := work(ctx, victim, r, i); err != nil {
					t.Errorf("other organization during the attack on %s: %v", r, err)
				}
			}
			return call(i, mine[i%2])
		})
		attempts += n
		for i := n; call(i, mine[i%2]) == nil; i++ { // reservations of racing calls counted, too
			attempts++
		}
		has, limit := book.Organization("acme").Used(r), atRest[r]
		slack := int64(0)
		if r.IsBytes() { // the next object is larger than the remaining bytes
			slack = 2 << 10
		}
		if has > limit || has < limit-slack {
			t.Errorf("%s: got %d after the attack, want the limit of %d", r, has, limit)
		}
	}
	attack(quota.Topics, 150, func(i int, c *dataplane.Cluster) error {
		return c.Broker.Catalogue.CreateTopic(ctx, topic(t, fmt.Sprintf("persistent://public/default/t%d", i)),
			messaging.NewTopic{Partitions: int32(i % 3)})
	})
	all := topicsOf(t, mine[0])
	used := all[:5]
	attack(quota.Subscriptions, 100, func(i int, _ *dataplane.Cluster) error {
		return mine[0].Broker.Consumer.Subscribe(ctx, used[i%len(used)].Name, fmt.Sprintf("s%d", i),
			messaging.Position{}, nil)
	})
	attack(quota.Subjects, 100, func(i int, c *dataplane.Cluster) error {
		return register(ctx, c, fmt.Sprintf("subject-%d", i), "same")
	})
	attack(quota.SchemaBytes, 100, func(i int, c *dataplane.Cluster) error {
		name := ""
		if err := c.Registry.Subjects(ctx, schemas.Active, func(s string) bool { name = s; return false }); err != nil {
			return err
		}
		return register(ctx, c, name, fmt.Sprintf("field_%d", i))
	})
	attack(quota.StoredBytes, 200, func(i int, _ *dataplane.Cluster) error {
		_, err := mine[0].Broker.Producer.Produce(ctx, used[i%len(used)].Name,
			&messaging.Message{SchemaVersion: messaging.NoSchema, Payload: make([]byte, 1000)})
		return err
	})
	over := 0
	for r, limit := range atRest {
		if limit > 0 && book.Organization("acme").Used(quota.Resource(r)) > limit {
			over++
		}
	}
	tally.Attack(t, "an organization takes more than its quotas", attempts, over)

	before := usage(book)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p, book = limited(t, dir, atRest)
	again := running(t, p, spec("acme", "a"))
	running(t, p, spec("acme", "b"))
	await(t, func() bool { return usage(book) == before })
	for _, name := range all {
		if err := again.Broker.Catalogue.DeleteTopic(ctx, name.Name, true); err != nil {
			t.Fatal(err)
		}
	}
	if n := book.Organization("acme").Used(quota.StoredBytes); n != 0 {
		t.Errorf("all topics with messages are deleted, but %d bytes are counted", n)
	}
	if _, err := again.Broker.Catalogue.Topic(ctx, used[0].Name); !errors.Is(err, messaging.ErrNoTopic) {
		t.Fatal(err)
	}
	if err := again.Broker.Catalogue.CreateTopic(ctx, used[0].Name, messaging.NewTopic{}); err != nil {
		t.Errorf("after topics were deleted: %v", err)
	}
}

// TestAttackRaisingALimit: a cluster's own limits can lower the organization's quota for it
// and never raise it.
func TestAttackRaisingALimit(t *testing.T) {
	t.Parallel()
	p, book := limited(t, t.TempDir(), quota.Limits{quota.Topics: 10})
	s := spec("acme", "c")
	s.Custom = map[string]string{"quota.topics": "1000000"}
	c := running(t, p, s)
	create := func(i int) error {
		return c.Broker.Catalogue.CreateTopic(t.Context(),
			topic(t, fmt.Sprintf("persistent://public/default/t%d", i)), messaging.NewTopic{})
	}
	succeeded := race(t, 30, create)
	s.Custom = map[string]string{"quota.topics": "5"}
	if again := running(t, p, s); again.Broker != c.Broker || again.Quota.Limits()[quota.Topics] != 5 {
		t.Errorf("got limits %v, want 5 topics", again.Quota.Limits())
	}
	if err := c.Broker.Catalogue.DeleteTopic(t.Context(), topicsOf(t, c)[0].Name, true); err != nil {
		t.Fatal(err)
	}
	if err := create(100); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("9 topics of 5: got %v, want an error", err)
	}
	if n := book.Organization("acme").Used(quota.Topics); n != 9 {
		t.Errorf("got %d topics, want 9, because existing topics are not removed", n)
	}
	tally.Attack(t, "a cluster raises its organization's limit", 30, max(0, succeeded-10))
}

// TestAttackClientState commits offsets as one account of a running cluster until its quota is full. Another account
// goes on, and the bytes are counted again after a restart.
func TestAttackClientState(t *testing.T) {
	t.Parallel()
	const share, attempts = 64 << 10, 100
	dir, limits := t.TempDir(), quota.Limits{quota.AccountStateBytes: share, quota.TenantStateBytes: 1 << 20}
	p, book := limited(t, dir, limits)
	c := running(t, p, spec("acme", "a"))
	commit := func(c *dataplane.Cluster, account string, i int) error {
		coordinator, err := c.Groups(t.Context(), 0, nil)
		if err != nil {
			return err
		}
		return coordinator.Commit(t.Context(), groups.Key{Tenant: "public", Group: fmt.Sprint(account, i)},
			&groups.CommitRequest{
				Generation: -1, Caller: groups.Caller{Principal: account},
				Offsets: map[groups.Partition]groups.Offset{
					groups.PartitionOf(1, 0): {Metadata: strings.Repeat("m", 4096)},
				},
			})
	}
	succeeded := race(t, attempts, func(i int) error { return commit(c, "mallory", i) })
	if err := commit(c, "alice", 0); err != nil {
		t.Errorf("other account: %v", err)
	}
	over := 0
	if n := book.Organization("acme").Used(quota.AccountStateBytes); n > share || succeeded == 0 {
		over = attempts
		t.Errorf("got %d bytes and %d commits, want at most %d bytes", n, succeeded, share)
	}
	tally.Attack(t, "an account commits above its share", attempts, over)
	before := book.Organization("acme").Used(quota.ClientStateBytes)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p, book = limited(t, dir, limits)
	again := running(t, p, spec("acme", "a"))
	if err := commit(again, "alice", 0); err != nil {
		t.Errorf("offsets that exist, after a restart: %v", err)
	}
	if n := book.Organization("acme").Used(quota.ClientStateBytes); n != before {
		t.Errorf("got %d bytes after a restart, want %d", n, before)
	}
}

// restoredStore is the first start after a restore.
type restoredStore struct{}

func (restoredStore) MayHaveNoStore(string) bool { return false }
func (restoredStore) IsFirstStart(string) bool   { return true }

// TestProducerIDsAfterRestore checks that ids that were issued after a backup stay valid when it is restored, and are
// not issued again.
func TestProducerIDsAfterRestore(t *testing.T) {
	t.Parallel()
	issue := func(restored dataplane.Restored, later int64) int64 {
		p, err := dataplane.Open(dataplane.Options{
			Dir: t.TempDir(), Restored: restored, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		coordinator, err := running(t, p, spec("acme", "a")).Groups(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if later > 0 {
			if _, issued, err := coordinator.ProducerOwner(t.Context(), later); !issued || err != nil {
				t.Errorf("id %d that was issued after the backup: got %v, %v, want it to be valid", later, issued, err)
			}
		}
		id, err := coordinator.ProducerID(t.Context(), "acme/worker")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	later := issue(nil, 0) // the backup is older: it has no id
	if id := issue(restoredStore{}, later); id <= later {
		t.Errorf("got id %d after a restore, want one above %d", id, later)
	}
}

// TestCustomKeys: CustomKeys contains a key for every quota that a cluster can limit.
func TestCustomKeys(t *testing.T) {
	t.Parallel()
	n := 0
	for key := range provision.CustomKeys {
		if _, _, ok, err := quota.ParseKey(key, "1"); ok && err == nil {
			n++
		}
	}
	if want := int(quota.Count) - 2; n != want {
		t.Errorf("%d keys limit a cluster, want %d", n, want)
	}
}

// work is the activity of another organization.
func work(ctx context.Context, c *dataplane.Cluster, r quota.Resource, i int) error {
	if r == quota.Topics {
		name := mustTopic(fmt.Sprintf("persistent://public/default/w%d", i))
		return c.Broker.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{})
	}
	_, err := c.Broker.Producer.Produce(ctx, mustTopic("persistent://public/default/w0"),
		&messaging.Message{SchemaVersion: messaging.NoSchema, Payload: []byte("x")})
	return err
}

func register(ctx context.Context, c *dataplane.Cluster, subject, field string) error {
	text := `{"type":"record","name":"R","fields":[{"name":"` + field + `","type":"string","default":""}]}`
	_, err := c.Registry.Register(ctx, subject, &schemas.Draft{Type: schemas.Avro, Text: text})
	return err
}

func mustTopic(text string) names.Topic {
	name, err := names.ParseTopic(text)
	if err != nil {
		panic(err)
	}
	return name
}

func topicsOf(t *testing.T, c *dataplane.Cluster) (list []messaging.Topic) {
	t.Helper()
	if err := c.Broker.Catalogue.Topics(t.Context(), nil, func(topic messaging.Topic) bool {
		list = append(list, topic)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// usage returns the usage of organization acme.
func usage(book *quota.Organizations) (used quota.Limits) {
	for r, limit := range atRest {
		if limit > 0 {
			used[r] = book.Organization("acme").Used(quota.Resource(r))
		}
	}
	return used
}

// await waits until a condition holds.
func await(t *testing.T, done func() bool) {
	t.Helper()
	poll.Until(t, 10*time.Second, "the condition", done)
}
