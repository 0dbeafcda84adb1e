// Package load runs clients that use a system concurrently in many ways, and records
// their calls and responses (package history): producers with and without idempotency
// keys, consumers that share a subscription and single consumers, Kafka producers, readers
// and a consumer group, and clients that create and delete topics, accounts, schemas and
// keys. Each HTTP call goes to a random member and is not retried, so the history contains
// the failures that a client library would hide.
//
// Every message has a stamp (package stamp): its topic, its producer, a number and a
// checksum. Kafka readers consume all Kafka topics concurrently, and some of the records
// are so large that one Fetch response consists of several parts.
//
// Kept is other, fewer clients whose data stays, so that it can be read again in full at any time.
//
// Load.mu protects the sets of acknowledged and delivered messages, of created names and
// of schema ids. It is never held during a call. Kept.keysMu protects the keys that stay. It is held
// during calls that revoke or use them, and mu is never taken while it is held.
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet.dev/client/schemas"
	"freshet/test/ensemble/history"
)

// Member is a server that clients can call.
type Member struct {
	Name, URL string
	// Kafka is the address of the Kafka listener; "" if Kafka is disabled.
	Kafka string
}

// Options configures the load.
type Options struct {
	// Token is the administrator's token.
	Token string
	// Seed determines the choices of the clients.
	Seed uint64
	// Topics is the number of topics for messages over HTTP; zero means 6.
	Topics int
	// Pause is the average interval between two calls of a client; zero means 25 ms.
	Pause time.Duration
	// Timeout bounds each call; zero means 5 s.
	Timeout time.Duration
}

// Load is the clients of one system.
type Load struct {
	o           Options
	recorder    *history.Recorder
	members     []*member
	topics      []string
	kafkaTopics []kafkaTopic
	// kafkaReaders are the subscriptions that must deliver every record of the Kafka topics.
	kafkaReaders []string

	writing, reading sync.WaitGroup
	stopWriting      context.CancelFunc
	stopReading      context.CancelFunc

	mu      sync.Mutex
	acked   map[delivery]bool // acknowledged to the producer, not yet delivered
	seen    map[delivery]bool // delivered
	created map[string]bool   // objects that a client may have created
	ids     map[string]string // of schemas
}

// kafkaTopic is a Kafka topic.
type kafkaTopic struct {
	topic      string
	partitions int
}

// delivery is a message on a subscription.
type delivery struct{ topic, subscription, value string }

type member struct {
	Member
	client    *client.Client
	registry  *schemas.Registry
	resources *resources.Client
}

// Subscriptions of every topic.
const (
	shared = "shared"
	single = "alone"
)

// Kafka readers. Each of them consumes all Kafka topics.
const (
	reader        = "reader" // fetches without limits
	slow          = "slow"   // fetches little at a time, so that partitions wait
	consumerGroup = "team"   // a consumer group that commits
)

// kafkaPartitions lists the number of partitions of each Kafka topic.
var kafkaPartitions = []int{1, 2, 3, 4, 1, 2, 3, 4}

// kafkaRetention bounds the disk space of a long run. Readers never lag that much.
const kafkaRetention = 5 * time.Minute

// New creates the topics and subscriptions that the load needs. All members must be
// ready.
func New(ctx context.Context, recorder *history.Recorder, members []Member, o Options) (*Load, error) {
	l, err := newLoad(recorder, members, o)
	if err != nil {
		return nil, err
	}
	return l, l.setUp(ctx)
}

// newLoad connects the clients and creates nothing.
func newLoad(recorder *history.Recorder, members []Member, o Options) (*Load, error) {
	if o.Topics == 0 {
		o.Topics = 6
	}
	if o.Pause == 0 {
		o.Pause = 25 * time.Millisecond
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	l := &Load{
		o: o, recorder: recorder, acked: map[delivery]bool{}, seen: map[delivery]bool{}, created: map[string]bool{},
		ids: map[string]string{},
	}
	for _, m := range members {
		c, err := client.New(client.Config{
			BaseURL: m.URL, TokenSource: client.StaticToken(o.Token), Timeout: o.Timeout, MaxAttempts: 1,
			Transport: &http.Transport{MaxIdleConnsPerHost: 100},
		})
		if err != nil {
			return nil, err
		}
		l.members = append(l.members,
			&member{Member: m, client: c, registry: schemas.New(c), resources: resources.New(c)})
	}
	return l, nil
}

func (l *Load) setUp(ctx context.Context) error {
	l.kafkaReaders = []string{reader, slow, consumerGroup}
	if err := l.createTopics(ctx); err != nil {
		return err
	}
	if l.members[0].Kafka != "" {
		if err := l.createKafkaTopics(ctx, "stream", kafkaPartitions, kafkaRetention); err != nil {
			return err
		}
		if err := l.backlog(ctx); err != nil {
			return err
		}
	}
	return l.createRobot(ctx)
}

func (l *Load) createTopics(ctx context.Context) error {
	c := l.members[0].client
	for i := range l.o.Topics {
		name := fmt.Sprintf("load-%d", i)
		if err := c.Topic(name).Create(ctx, client.TopicOptions{Partitions: 2}); err != nil {
			return fmt.Errorf("creating topic %s: %w", name, err)
		}
		for _, subscription := range []string{shared, single} {
			if err := c.Topic(name).Subscription(subscription).Create(ctx,
				client.SubscriptionOptions{From: client.Earliest}); err != nil {
				return fmt.Errorf("creating subscription %s of %s: %w", subscription, name, err)
			}
		}
		l.topics = append(l.topics, name)
	}
	return nil
}

// createKafkaTopics creates topics for Kafka clients, one for each number of partitions.
func (l *Load) createKafkaTopics(ctx context.Context, prefix string, sizes []int, retention time.Duration) error {
	properties := map[string]string{"retention.ms": fmt.Sprint(retention.Milliseconds())}
	for i, partitions := range sizes {
		name := fmt.Sprintf("%s-%d", prefix, i)
		options := client.TopicOptions{Partitions: partitions, Properties: properties}
		if err := l.members[0].client.Topic(name).Create(ctx, options); err != nil {
			return fmt.Errorf("creating topic %s: %w", name, err)
		}
		l.kafkaTopics = append(l.kafkaTopics, kafkaTopic{name, partitions})
	}
	return nil
}

// createRobot creates the account of the API keys.
func (l *Load) createRobot(ctx context.Context) error {
	account := map[string]any{
		"apiVersion": resources.ServiceAccounts.APIVersion(), "kind": "ServiceAccount",
		"metadata": map[string]any{"name": robot},
	}
	if _, err := l.members[0].resources.Create(ctx, resources.ServiceAccounts, organization, account,
		resources.WriteOptions{}); err != nil {
		return fmt.Errorf("creating account %s: %w", robot, err)
	}
	return nil
}

// Expect returns in which respects the history is complete.
func (l *Load) Expect() history.Expect {
	e := history.Expect{Complete: map[string][]string{}, Single: map[string][]string{}}
	for _, topic := range l.topics {
		e.Complete[topic], e.Single[topic] = []string{shared, single}, []string{single}
	}
	for _, s := range l.kafkaTopics {
		e.Complete[historyName(s.topic)] = l.kafkaReaders
		e.Single[historyName(s.topic)] = []string{reader, slow}
	}
	return e
}

// Start starts the clients. ctx bounds all of them; Finish stops them in order.
func (l *Load) Start(ctx context.Context) {
	writing, stopWriting := context.WithCancel(ctx)
	reading, stopReading := context.WithCancel(ctx)
	l.stopWriting, l.stopReading = stopWriting, stopReading
	number := uint64(0)
	run := func(ctx context.Context, wg *sync.WaitGroup, name string, work func(*worker, context.Context)) {
		number++
		w := &worker{Load: l, name: name, rand: rand.New(rand.NewPCG(l.o.Seed, number))}
		wg.Go(func() { work(w, ctx) })
	}
	for _, topic := range l.topics {
		run(writing, &l.writing, topic+" plain", func(w *worker, ctx context.Context) { w.produce(ctx, topic, false) })
		run(writing, &l.writing, topic+" idempotent",
			func(w *worker, ctx context.Context) { w.produce(ctx, topic, true) })
		run(reading, &l.reading, topic+" alone", func(w *worker, ctx context.Context) { w.consume(ctx, topic, single) })
		for i := range 2 {
			run(reading, &l.reading, fmt.Sprintf("%s shared %d", topic, i),
				func(w *worker, ctx context.Context) { w.consume(ctx, topic, shared) })
		}
	}
	for _, s := range l.kafkaTopics {
		run(writing, &l.writing, s.topic+" producer",
			func(w *worker, ctx context.Context) { w.produceKafka(ctx, reading, s) })
	}
	if len(l.kafkaTopics) > 0 {
		run(reading, &l.reading, reader, (*worker).readFast)
		run(reading, &l.reading, slow, (*worker).readSlowly)
		run(reading, &l.reading, consumerGroup+" 0", (*worker).readInGroup)
		run(reading, &l.reading, consumerGroup+" 1", (*worker).readInGroup)
		for i := range 4 {
			group := fmt.Sprintf("group-%d", i)
			run(writing, &l.writing, group,
				func(w *worker, ctx context.Context) { w.commit(ctx, group, l.kafkaTopics[0].topic) })
		}
	}
	for i := range 3 {
		run(writing, &l.writing, fmt.Sprintf("topics %d", i), (*worker).nameTopics)
	}
	run(writing, &l.writing, "accounts", (*worker).nameAccounts)
	run(writing, &l.writing, "schemas 0", (*worker).register)
	run(writing, &l.writing, "schemas 1", (*worker).register)
	run(writing, &l.writing, "keys", (*worker).useKeys)
}

// worker is one client.
type worker struct {
	*Load
	name string
	rand *rand.Rand
	next int
}

// any returns a random member.
func (w *worker) any() *member { return w.members[w.rand.IntN(len(w.members))] }

// pause waits before the next call and returns false if the context ends first.
func (w *worker) pause(ctx context.Context) bool { return w.pauseFor(ctx, w.o.Pause) }

// longPause is a longer pause, for clients whose objects are checked in the end.
func (w *worker) longPause(ctx context.Context) bool { return w.pauseFor(ctx, 8*w.o.Pause) }

func (w *worker) pauseFor(ctx context.Context, about time.Duration) bool {
	w.next++
	select {
	case <-time.After(about/2 + rand.N(about)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// op returns an operation of this client at a member with the outcome of err. refusals are
// the errors that mean Refused for this operation.
func (w *worker) op(m *member, kind history.Kind, thing string, err error, refusals ...error) history.Op {
	o := history.Op{Kind: kind, Client: w.name, Member: m.Name, Object: thing, Outcome: history.OK}
	if err == nil {
		return o
	}
	o.Note = err.Error()
	var response *client.Error
	switch {
	case isAny(err, refusals):
		o.Outcome = history.Refused
	case errors.As(err, &response) && response.Status < 500 && response.Status != http.StatusTooManyRequests:
		o.Outcome = history.Unexpected
	default:
		o.Outcome = history.Unknown
	}
	return o
}

func isAny(err error, kinds []error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
