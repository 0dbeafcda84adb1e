package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"freshet/internal/base/lru"
	"freshet/internal/base/names"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
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
	// PayloadSchema returns how to decode payloads with the schema id; nil when the id does not exist.
	PayloadSchema(ctx context.Context, id int32) (*filter.Schema, error)
}

// Options configures a broker; the zero value is usable.
type Options struct {
	Limits  Limits
	Schemas SchemaRegistry // nil means no registry
	Pool    *workpool.Pool // checks schemas and large payloads; nil means a new pool
	Quota   *quota.Cluster // nil means only Limits apply
	// Unpacking is the memory to decompress the batches of producers, which all clusters of the
	// process share; nil means one of the default size.
	Unpacking *unpacking.Budget
	Logger    *slog.Logger // nil means slog.Default()
	// SnapshotBytes is how much the catalogue's journal grows between snapshots; 0 means the
	// default of package statemachine.
	SnapshotBytes int64
	// Shards is the number of shards that the topics are spread over. Each shard is owned by one
	// member of an ensemble: the member calls AcquireShard when it becomes the owner and
	// ReleaseShard when it no longer is. 0 means that this process has all topics.
	Shards int
}

// Broker serves the topics of one running cluster. It is composed of parts that share the catalogue,
// the engine and the in-memory state of topics. Callers take the part that they need. Broker itself
// opens, drains and closes the parts, and follows the ownership of shards.
type Broker struct {
	Catalogue  *Catalogue     // tenants, namespaces, topics and their policies
	Grants     *ClusterGrants // permissions that the catalogue's policies grant
	Schemas    *TopicSchemas  // schemas of topics
	Producer   *Producer      // produces messages
	Consumer   *Consumer      // subscriptions, deliveries and readers
	Kafka      *KafkaLog      // topics as logs of batches
	Shares     *Shares        // subscriptions as share groups of the Kafka protocol
	Searcher   *Searcher      // finds messages by expressions
	Replayer   *Replayer      // sends dead letters again
	Statistics *Statistics    // statistics and usage

	limits Limits
	state  *statemachine.Machine[*catalogueState]
	engine engine.Engine
	topics *engineTopics
	live   *liveTopics
	life   *lifecycle
}

const journalName = "messaging"

// Open opens the broker of a cluster on its engine. It first completes changes that a crash
// interrupted between catalogue and engine. The caller keeps ownership of the engine and closes it
// after the broker.
func Open(ctx context.Context, eng engine.Engine, opts Options) (*Broker, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Pool == nil {
		opts.Pool = workpool.New()
	}
	if opts.Unpacking == nil {
		opts.Unpacking = unpacking.New(unpacking.DefaultBytes)
	}
	journal, err := eng.Journal(ctx, journalName)
	if err != nil {
		return nil, fmt.Errorf("opening the catalogue's journal: %w", err)
	}
	machine, err := statemachine.Open(ctx, journal, statemachine.Options[*catalogueState]{
		Empty:         newCatalogueState(),
		SnapshotBytes: opts.SnapshotBytes,
		Name:          "catalogue",
		Logger:        opts.Logger,
	})
	if err != nil {
		return nil, err
	}
	b := compose(eng, machine, newLifecycle(ctx), opts)
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	eng.OnDeadLetter(func(id engine.TopicID) { b.live.of(id).dead.add(0) })
	return b, nil
}

// compose returns a broker whose parts share an engine and a catalogue.
func compose(eng engine.Engine, machine *statemachine.Machine[*catalogueState], life *lifecycle,
	opts Options,
) *Broker {
	b := &Broker{limits: opts.Limits.withDefaults(), state: machine, engine: eng, life: life}
	b.live = &liveTopics{state: machine, limits: &b.limits}
	b.topics = &engineTopics{
		engine: eng, state: machine, limits: &b.limits, live: b.live, life: life, log: opts.Logger,
	}
	contracts := newContracts(opts.Pool)
	b.Catalogue = &Catalogue{
		state: machine, topics: b.topics, contracts: contracts, limits: &b.limits, quota: opts.Quota,
		shards: opts.Shards,
	}
	b.Grants = &ClusterGrants{state: machine}
	b.Schemas = &TopicSchemas{catalogue: b.Catalogue, limits: &b.limits, quota: opts.Quota, pool: opts.Pool}
	admission := &admission{
		limits: &b.limits, registry: opts.Schemas, pool: opts.Pool, checkers: newSchemaCache(maxParsedSchemas),
		contracts: contracts, decoders: lru.New[decoderKey, *filter.Schema](decoderTexts),
	}
	b.Producer = &Producer{
		engine: eng, catalogue: b.Catalogue, topics: b.topics, live: b.live, admission: admission,
		limits: &b.limits, quota: opts.Quota,
	}
	b.Consumer = &Consumer{
		engine: eng, catalogue: b.Catalogue, topics: b.topics, live: b.live, life: life,
		limits: &b.limits, quota: opts.Quota,
	}
	b.Kafka = &KafkaLog{
		engine: eng, catalogue: b.Catalogue, topics: b.topics, live: b.live, life: life, admission: admission,
		contracts: contracts, limits: &b.limits, quota: opts.Quota, unpacking: opts.Unpacking,
	}
	b.Shares = &Shares{consumer: b.Consumer, engine: eng, usage: eng}
	b.Searcher = &Searcher{
		engine: eng, consumer: b.Consumer, pool: opts.Pool, unpacking: opts.Unpacking, registry: opts.Schemas,
	}
	eng.SelectWith(&subscriptionFilters{searcher: b.Searcher, live: b.live, cache: newFilterCache()})
	b.Replayer = &Replayer{searcher: b.Searcher, producer: b.Producer, limits: &b.limits}
	b.Statistics = &Statistics{
		engine: eng, catalogue: b.Catalogue, live: b.live, consumer: b.Consumer, limits: &b.limits,
	}
	return b
}

func (b *Broker) start(ctx context.Context) error {
	_, err := b.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		if c.seeded {
			return nil, nil
		}
		return [][]byte{record{Op: opSeed}.encode()}, nil
	})
	if err != nil {
		return fmt.Errorf("creating %s: %w", names.PublicDefault, err)
	}
	if b.Catalogue.shards > 0 {
		return nil // AcquireShard reconciles each shard
	}
	return b.topics.reconcile(ctx, b.engine, func(engine.TopicID) bool { return true })
}

// Limits returns the limits with their defaults filled in.
func (b *Broker) Limits() Limits { return b.limits }

// Health returns nil while the broker can serve requests, and otherwise the reason.
func (b *Broker) Health() error {
	return errors.Join(b.engine.Health(), b.state.Health())
}

// Drain ends every wait for messages, current and future, with an empty result, so that a server
// can finish its requests. All other calls still work.
func (b *Broker) Drain() { b.life.drain() }

// Close drains and stops the broker. It does not close the engine.
func (b *Broker) Close() error {
	b.life.end()
	return b.state.Close()
}

// now returns the current time in epoch milliseconds.
func now() int64 { return time.Now().UnixMilli() }
