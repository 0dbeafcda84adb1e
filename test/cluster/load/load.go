// Package load has clients use a running system in every way at once, and writes
// down what they were told (package history): producers with and without
// idempotency keys, consumers that share a subscription and consumers that are
// alone on theirs, producers, readers and a consumer group of the stream protocol, and
// people who make and remove topics, accounts, schemas and keys. Each call goes to a
// member that is chosen by chance, and is made once: what a client library would repeat
// is seen here as it is.
//
// Every message carries a stamp (package stamp): its topic, its producer, a number and a
// checksum. Readers of the stream protocol consume all of its topics at once, and some
// of the records are so large that one answer to a Fetch consists of several parts.
//
// The lock of a Load guards what was acknowledged and what was seen; it is never
// held during a call.
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"freshet/client"
	"freshet/client/resources"
	"freshet/client/schemas"
	"freshet/test/cluster/history"
)

// Member is a server that clients can call.
type Member struct {
	Name, URL string
	// Stream is the address of the stream protocol; "" when it is not served.
	Stream string
}

// Options say how much is done.
type Options struct {
	// Token is the administrator's.
	Token string
	// Seed makes the choices of the clients; those of the same seed are the same.
	Seed uint64
	// Topics is how many topics messages go to; 6 when zero.
	Topics int
	// Pause is what each client waits between two calls; 25 ms when zero.
	Pause time.Duration
	// Timeout bounds each call; 5 s when zero.
	Timeout time.Duration
}

// Load is the clients of one system.
type Load struct {
	o        Options
	recorder *history.Recorder
	members  []*member
	topics   []string
	streams  []stream

	writing, reading sync.WaitGroup
	stopWriting      context.CancelFunc
	stopReading      context.CancelFunc

	mu    sync.Mutex
	acked map[place]bool // on a subscription: acknowledged to its producer, and there to be seen
	seen  map[place]bool
	made  map[string]bool   // names that somebody may have given
	ids   map[string]string // of schemas
}

// stream is a topic of the stream protocol.
type stream struct {
	topic      string
	partitions int
}

// place is a message on a subscription.
type place struct{ topic, subscription, value string }

type member struct {
	Member
	client    *client.Client
	registry  *schemas.Registry
	resources *resources.Client
}

// Subscriptions of every topic.
const (
	shared = "shared"
	alone  = "alone"
)

// Readers of the stream protocol. Each of them consumes all topics of the stream
// protocol.
const (
	reader = "reader" // fetches as much as it gets
	slow   = "slow"   // fetches little at a time, so that partitions wait for their turn
	team   = "team"   // a consumer group that commits
)

// streamPartitions has the number of partitions of each topic of the stream protocol.
var streamPartitions = []int{1, 2, 3, 4, 1, 2, 3, 4}

// streamRetention bounds the disk space that a long run needs. Readers are never as far
// behind as that.
const streamRetention = 5 * time.Minute

// New makes the topics and subscriptions that the load needs. All members have to
// be there.
func New(ctx context.Context, recorder *history.Recorder, members []Member, o Options) (*Load, error) {
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
		o: o, recorder: recorder, acked: map[place]bool{}, seen: map[place]bool{}, made: map[string]bool{},
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
	return l, l.setUp(ctx)
}

func (l *Load) setUp(ctx context.Context) error {
	c := l.members[0].client
	for i := range l.o.Topics {
		name := fmt.Sprintf("load-%d", i)
		if err := c.Topic(name).Create(ctx, client.TopicOptions{Partitions: 2}); err != nil {
			return fmt.Errorf("making topic %s: %w", name, err)
		}
		for _, subscription := range []string{shared, alone} {
			if err := c.Topic(name).Subscription(subscription).Create(ctx,
				client.SubscriptionOptions{From: client.Earliest}); err != nil {
				return fmt.Errorf("making subscription %s of %s: %w", subscription, name, err)
			}
		}
		l.topics = append(l.topics, name)
	}
	if l.members[0].Stream != "" {
		for i, partitions := range streamPartitions {
			name := fmt.Sprintf("stream-%d", i)
			properties := map[string]string{"retention.ms": fmt.Sprint(streamRetention.Milliseconds())}
			options := client.TopicOptions{Partitions: partitions, Properties: properties}
			if err := c.Topic(name).Create(ctx, options); err != nil {
				return fmt.Errorf("making topic %s: %w", name, err)
			}
			l.streams = append(l.streams, stream{name, partitions})
		}
		if err := l.backlog(ctx); err != nil {
			return err
		}
	}
	account := map[string]any{
		"apiVersion": resources.ServiceAccounts.APIVersion(), "kind": "ServiceAccount",
		"metadata": map[string]any{"name": robot},
	}
	if _, err := l.members[0].resources.Create(ctx, resources.ServiceAccounts, organization, account,
		resources.WriteOptions{}); err != nil {
		return fmt.Errorf("making account %s: %w", robot, err)
	}
	return nil
}

// Expect is what the history has to be complete in.
func (l *Load) Expect() history.Expect {
	e := history.Expect{Complete: map[string][]string{}, Single: map[string][]string{}}
	for _, topic := range l.topics {
		e.Complete[topic], e.Single[topic] = []string{shared, alone}, []string{alone}
	}
	for _, s := range l.streams {
		e.Complete[ofStream(s.topic)] = []string{reader, slow, team}
		e.Single[ofStream(s.topic)] = []string{reader, slow}
	}
	return e
}

// Start begins. The context bounds all clients; Finish ends them in order.
func (l *Load) Start(ctx context.Context) {
	writing, stopWriting := context.WithCancel(ctx)
	reading, stopReading := context.WithCancel(ctx)
	l.stopWriting, l.stopReading = stopWriting, stopReading
	number := uint64(0)
	run := func(ctx context.Context, group *sync.WaitGroup, name string, work func(*worker, context.Context)) {
		number++
		w := &worker{Load: l, name: name, rand: rand.New(rand.NewPCG(l.o.Seed, number))}
		group.Go(func() { work(w, ctx) })
	}
	for _, topic := range l.topics {
		run(writing, &l.writing, topic+" plain", func(w *worker, ctx context.Context) { w.produce(ctx, topic, false) })
		run(writing, &l.writing, topic+" idempotent",
			func(w *worker, ctx context.Context) { w.produce(ctx, topic, true) })
		run(reading, &l.reading, topic+" alone", func(w *worker, ctx context.Context) { w.consume(ctx, topic, alone) })
		for i := range 2 {
			run(reading, &l.reading, fmt.Sprintf("%s shared %d", topic, i),
				func(w *worker, ctx context.Context) { w.consume(ctx, topic, shared) })
		}
	}
	for _, s := range l.streams {
		run(writing, &l.writing, s.topic+" producer",
			func(w *worker, ctx context.Context) { w.produceStream(ctx, reading, s) })
	}
	if len(l.streams) > 0 {
		run(reading, &l.reading, reader, (*worker).readAtOnce)
		run(reading, &l.reading, slow, (*worker).readSlowly)
		run(reading, &l.reading, team+" 0", (*worker).readInTeam)
		run(reading, &l.reading, team+" 1", (*worker).readInTeam)
		for i := range 4 {
			group := fmt.Sprintf("group-%d", i)
			run(writing, &l.writing, group,
				func(w *worker, ctx context.Context) { w.commit(ctx, group, l.streams[0].topic) })
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

// any is a member by chance.
func (w *worker) any() *member { return w.members[w.rand.IntN(len(w.members))] }

// pause waits before the next call and says whether there is one.
func (w *worker) pause(ctx context.Context) bool { return w.pauseFor(ctx, w.o.Pause) }

// rest is a longer pause, of those whose work has to be looked at in the end.
func (w *worker) rest(ctx context.Context) bool { return w.pauseFor(ctx, 8*w.o.Pause) }

func (w *worker) pauseFor(ctx context.Context, about time.Duration) bool {
	w.next++
	select {
	case <-time.After(about/2 + rand.N(about)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// op is an operation of this client at a member, with the outcome of an error. The
// refusals are those that the operation may rightly get.
func (w *worker) op(m *member, kind history.Kind, thing string, err error, refusals ...error) history.Op {
	o := history.Op{Kind: kind, Client: w.name, Member: m.Name, Thing: thing, Outcome: history.OK}
	if err == nil {
		return o
	}
	o.Note = err.Error()
	var answer *client.Error
	switch {
	case isAny(err, refusals):
		o.Outcome = history.Refused
	case errors.As(err, &answer) && answer.Status < 500 && answer.Status != http.StatusTooManyRequests:
		o.Outcome = history.Absurd
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
