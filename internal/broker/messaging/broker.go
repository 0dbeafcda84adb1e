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

// SchemaRegistry is the part of the cluster's schema registry that the broker uses. Topics with the
// property PropertyKeyValidation or PropertyValueValidation accept only records that start with a
// schema id of their subject.
type SchemaRegistry interface {
	// SubjectHasID reports whether a version of the subject has the schema id.
	SubjectHasID(ctx context.Context, subject string, id int32) (bool, error)
	// RecordNames returns the record names that serializers derive subjects from for the
	// schema with the id; none when the id does not exist.
	RecordNames(ctx context.Context, id int32) ([]string, error)
}

// Options configures a broker; the zero value is usable.
type Options struct {
	Limits  Limits
	Schemas SchemaRegistry // nil means no registry
	Pool    *workpool.Pool // checks schemas and large payloads; nil means a new pool
	Quota   *quota.Cluster // nil means only Limits apply
	Logger  *slog.Logger   // nil means slog.Default()
	// SnapshotBytes is how much the catalogue's journal grows between snapshots; 0 means the
	// default of package statemachine.
	SnapshotBytes int64
	// Shards is the number of shards that the topics are spread over. Each shard is owned by one
	// member of an ensemble: the member calls AcquireShard when it becomes the owner and
	// ReleaseShard when it no longer is. 0 means that this process has all topics.
	Shards int
}

// Broker serves the topics of one running cluster.
type Broker struct {
	engine         engine.Engine
	limits         Limits
	registry       SchemaRegistry
	quota          *quota.Cluster
	log            *slog.Logger
	catalogue      *statemachine.Machine[*catalogue]
	schemaCheckers schemaCache
	pool           *workpool.Pool
	shards         int                        // 0 means that all topics are in this process
	grantIndex     atomic.Pointer[grantIndex] // cached for one state of the catalogue

	live            sync.Map // engine.TopicID → *liveTopic, for topics used since Open
	namespaceMeters namespaceMeters
	waiting         atomic.Int64
	topicLocks      [64]sync.Mutex // by topic id; see topicLock

	draining context.Context //nolint:containedctx // cancelled by Drain; ends long polls
	drain    context.CancelFunc
	ctx      context.Context //nolint:containedctx // context of background work, cancelled by Close
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

const journalName = "messaging"

// Open opens the broker of a cluster on its engine. It first completes changes that a crash
// interrupted between catalogue and engine. The caller keeps ownership of the engine and closes it
// after the broker.
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
		engine:         eng,
		limits:         opts.Limits.withDefaults(),
		registry:       opts.Schemas,
		quota:          opts.Quota,
		log:            log,
		catalogue:      machine,
		schemaCheckers: newSchemaCache(maxParsedSchemas),
		pool:           opts.Pool,
		shards:         opts.Shards,
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
		return nil // AcquireShard reconciles each shard
	}
	return b.reconcile(ctx, b.engine, func(engine.TopicID) bool { return true })
}

// Limits returns the limits with their defaults filled in.
func (b *Broker) Limits() Limits { return b.limits }

// Health returns nil while the broker can serve requests, and otherwise the reason.
func (b *Broker) Health() error {
	return errors.Join(b.engine.Health(), b.catalogue.Health())
}

// Drain ends every wait for messages, current and future, with an empty result, so that a server
// can finish its requests. All other calls still work.
func (b *Broker) Drain() { b.drain() }

// Close drains and stops the broker. It does not close the engine.
func (b *Broker) Close() error {
	b.cancel()
	b.work.Wait()
	return b.catalogue.Close()
}

// now returns the current time in epoch milliseconds.
func now() int64 { return time.Now().UnixMilli() }

// target is the topic, or the partition of a topic, that a name resolves to.
type target struct {
	*topic
	partition int32 // engine.AllPartitions, or the partition in the name
}

// resolve looks a name up. Another member may have just created the topic, so after a miss resolve
// reads the journal and looks again.
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

// missingError returns an error for the first part of a topic's name that does not exist.
func missingError(c *catalogue, name names.Topic) error {
	if _, ok := c.tenants.Get(name.Namespace.Tenant); !ok {
		return ErrNoTenant
	}
	if _, ok := c.namespace(name.Namespace); !ok {
		return ErrNoNamespace
	}
	return ErrNoTopic
}

// topicLock returns the lock that is held while the engine's configuration of a topic changes.
func (b *Broker) topicLock(id engine.TopicID) *sync.Mutex {
	return &b.topicLocks[uint64(id)%uint64(len(b.topicLocks))]
}
