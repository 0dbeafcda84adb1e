package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/base/workpool"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// SchemaIDs answers for the cluster's schema registry. Topics whose properties
// ask for it take only records that start with an id of their subject.
type SchemaIDs interface {
	SubjectHasID(ctx context.Context, subject string, id int32) (bool, error)
	// RecordNames returns what serializers call that which the schema with an id
	// describes; none when there is no such id.
	RecordNames(ctx context.Context, id int32) ([]string, error)
}

// Options configures a broker; the zero value is usable.
type Options struct {
	Limits  Limits
	Schemas SchemaIDs      // nil: no registry
	Pool    *workpool.Pool // where schemas and large payloads are checked; nil: one of its own
	Quota   *quota.Cluster // nil: no limits but those of Limits
	Logger  *slog.Logger   // nil: slog.Default()
	// SnapshotBytes is how much the catalogue's journal grows between
	// snapshots; 0 means the default of package replica.
	SnapshotBytes int64
	// Shards says that the topics are spread over so many shards, each of which one
	// member of a group owns; 0: this process has them all. Then Adopt is called for
	// each shard that becomes this member's, and Abandon when it no longer is.
	Shards int
}

// Broker is the message interface of one running cluster.
type Broker struct {
	engine    engine.Engine
	limits    Limits
	registry  SchemaIDs
	quota     *quota.Cluster
	log       *slog.Logger
	catalogue *statemachine.Machine[*catalogue]
	parsed    schemaCache
	pool      *workpool.Pool
	shards    int                        // 0: all topics are here
	granted   atomic.Pointer[grantIndex] // of the newest catalogue that was asked

	live       sync.Map // engine.TopicID → *liveTopic, for topics that were used
	spaces     namespaceMeters
	waiting    atomic.Int64
	topicLocks [64]sync.Mutex // by topic id: held while a topic is changed in the engine, so that the newest rules win

	draining context.Context //nolint:containedctx // ended by Drain; long polls hang on it
	drain    context.CancelFunc
	ctx      context.Context //nolint:containedctx // the life of background work, ended by Close
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

const journalName = "messaging"

// Open makes the broker of a cluster over its engine, which stays the
// caller's: it is closed after the broker. Whatever a crash left half done
// between catalogue and engine is finished first.
func Open(ctx context.Context, eng engine.Engine, opts Options) (*Broker, error) {
	log := opts.Logger
	if log == nil {
		log = slog.Default()
	}
	journal, err := eng.Journal(ctx, journalName)
	if err != nil {
		return nil, fmt.Errorf("opening the catalogue's journal: %w", err)
	}
	machine, err := statemachine.Open(ctx, journal, statemachine.Options[*catalogue]{
		Empty:         newCatalogue,
		Restore:       restoreCatalogue,
		SnapshotBytes: opts.SnapshotBytes,
		Name:          "catalogue",
		Logger:        log,
	})
	if err != nil {
		return nil, err
	}
	if opts.Pool == nil {
		opts.Pool = workpool.New()
	}
	b := &Broker{
		engine:    eng,
		limits:    opts.Limits.withDefaults(),
		registry:  opts.Schemas,
		quota:     opts.Quota,
		log:       log,
		catalogue: machine,
		parsed:    newSchemaCache(maxParsedSchemas),
		pool:      opts.Pool,
		shards:    opts.Shards,
	}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.draining, b.drain = context.WithCancel(b.ctx)
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	eng.OnDeadLetter(func(id engine.TopicID) { b.liveOf(id).dead.add(0) })
	return b, nil
}

func (b *Broker) start(ctx context.Context) error {
	_, err := b.catalogue.Update(ctx, func(c *catalogue) ([][]byte, error) {
		if c.seeded {
			return nil, nil
		}
		return [][]byte{record{Op: opSeed}.encode()}, nil
	})
	if err != nil {
		return fmt.Errorf("creating %s: %w", names.PublicDefault, err)
	}
	if b.shards > 0 {
		return nil // Adopt does it, shard by shard
	}
	return b.reconcile(ctx, b.engine, func(engine.TopicID) bool { return true })
}

// Limits returns the limits in force.
func (b *Broker) Limits() Limits { return b.limits }

// Health returns nil while the broker can do its work.
func (b *Broker) Health() error {
	return errors.Join(b.engine.Health(), b.catalogue.Health())
}

// Drain answers every waiting consumer with nothing, now and from now on, so
// that a server can finish its requests. All other calls still work.
func (b *Broker) Drain() { b.drain() }

// Close drains and stops the broker. The engine stays open.
func (b *Broker) Close() error {
	b.cancel()
	b.work.Wait()
	return b.catalogue.Close()
}

// now is the time in records; every decision that depends on it takes it once.
func now() int64 { return time.Now().UnixMilli() }

// target is a topic, or one partition of it, that a name led to.
type target struct {
	*topic
	partition int32 // engine.AllPartitions, or the one that was named
}

// resolve finds what a name means. A name that this replica does not know may
// have been created by another one a moment ago, so a miss asks again.
func (b *Broker) resolve(ctx context.Context, name names.Topic) (target, error) {
	if t, ok := lookup(b.catalogue.View(), name); ok {
		return t, nil
	}
	fresh, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return target{}, err
	}
	if t, ok := lookup(fresh, name); ok {
		return t, nil
	}
	return target{}, missingError(fresh, name)
}

func lookup(c *catalogue, name names.Topic) (target, bool) {
	if t, ok := c.topic(name); ok {
		return target{topic: t, partition: engine.AllPartitions}, true
	}
	parent, index, ok := name.Partition()
	if !ok {
		return target{}, false
	}
	t, ok := c.topic(parent)
	if !ok || index >= t.partitions {
		return target{}, false
	}
	return target{topic: t, partition: index}, true
}

// missingError says as exactly as possible what of a topic's name does not exist.
func missingError(c *catalogue, name names.Topic) error {
	if _, ok := c.tenants.Get(name.Namespace.Tenant); !ok {
		return ErrNoTenant
	}
	if _, ok := c.namespace(name.Namespace); !ok {
		return ErrNoNamespace
	}
	return ErrNoTopic
}

func (b *Broker) topicLock(id engine.TopicID) *sync.Mutex {
	return &b.topicLocks[uint64(id)%uint64(len(b.topicLocks))]
}
