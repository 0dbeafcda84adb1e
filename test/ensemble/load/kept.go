package load

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"freshet.dev/client/resources"
	"freshet/internal/base/names"
	"freshet/test/ensemble/history"
)

// Kept is clients whose data stays: topics that keep all messages, schemas, API keys and committed
// offsets. Verify reads all of it again, at any time and as often as needed. Two other topics have
// subscriptions whose messages are consumed and acknowledged. keysMu protects the keys; it is held
// while a key is revoked and while Verify uses them, so that Verify uses no revoked one.
type Kept struct {
	*Load
	groups []string

	keysMu sync.Mutex
	keys   map[string]string // name: token

	early []history.Op // messages and positions of the last check that nobody was known to have sent or committed
}

// Sizes of Kept.
const (
	keptRetention   = 7 * 24 * time.Hour
	keptGroups      = 2
	maxKeys         = 20 // more would make Verify slow
	consumedTopics  = 2
	prefilledRounds = 12
)

// keptPartitions has enough topics that every member owns some.
var keptPartitions = []int{2, 1, 2, 1, 2, 1, 2, 1}

// NewKept creates the topics and stores some messages in each. All members must be ready.
func NewKept(ctx context.Context, recorder *history.Recorder, members []Member, o Options) (*Kept, error) {
	o.Topics = consumedTopics
	l, err := newLoad(recorder, members, o)
	if err != nil {
		return nil, err
	}
	k := &Kept{Load: l, keys: map[string]string{}}
	for i := range keptGroups {
		k.groups = append(k.groups, fmt.Sprintf("kept-group-%d", i))
	}
	if err := l.createTopics(ctx); err != nil {
		return nil, err
	}
	if err := l.createKafkaTopics(ctx, "kept", keptPartitions, keptRetention); err != nil {
		return nil, err
	}
	if err := l.createRobot(ctx); err != nil {
		return nil, err
	}
	return k, k.prefill(ctx)
}

// prefill stores messages of some KiB, so that every file of a shard has content.
func (k *Kept) prefill(ctx context.Context) error {
	w := &worker{Load: k.Load, name: "prefill", rand: rand.New(rand.NewPCG(k.o.Seed, 0))}
	c, err := w.producer()
	if err != nil {
		return err
	}
	defer c.Close()
	for range prefilledRounds {
		for _, topic := range k.kafkaTopics {
			for partition := range topic.partitions {
				w.next++
				size := 2<<10 + w.rand.IntN(14<<10)
				if err := w.send(ctx, c, topic.topic, int32(partition), size); err != nil {
					return fmt.Errorf("producing to topic %s: %w", topic.topic, err)
				}
			}
		}
	}
	return nil
}

// Start starts the clients. ctx bounds all of them; Stop stops them in order.
func (k *Kept) Start(ctx context.Context) {
	writing, stopWriting := context.WithCancel(ctx)
	reading, stopReading := context.WithCancel(ctx)
	k.stopWriting, k.stopReading = stopWriting, stopReading
	number := uint64(0)
	run := func(ctx context.Context, wg *sync.WaitGroup, name string, work func(*worker, context.Context)) {
		number++
		w := &worker{Load: k.Load, name: name, rand: rand.New(rand.NewPCG(k.o.Seed, number))}
		wg.Go(func() { work(w, ctx) })
	}
	for _, topic := range k.topics {
		run(writing, &k.writing, topic+" idempotent",
			func(w *worker, ctx context.Context) { w.produce(ctx, topic, true) })
		run(reading, &k.reading, topic+" alone", func(w *worker, ctx context.Context) { w.consume(ctx, topic, single) })
		run(reading, &k.reading, topic+" shared",
			func(w *worker, ctx context.Context) { w.consume(ctx, topic, shared) })
	}
	for i, topic := range k.kafkaTopics {
		if i%2 == 0 {
			run(writing, &k.writing, topic.topic+" producer",
				func(w *worker, ctx context.Context) { w.produceSmall(ctx, reading, topic) })
		}
		run(writing, &k.writing, topic.topic+" idempotent", func(w *worker, ctx context.Context) {
			w.produceAs(ctx, topic.topic, historyName(topic.topic), true, asOffset)
		})
	}
	for _, group := range k.groups {
		run(writing, &k.writing, group,
			func(w *worker, ctx context.Context) { w.commit(ctx, group, k.kafkaTopics[0].topic) })
	}
	run(writing, &k.writing, "schemas", (*worker).register)
	run(writing, &k.writing, "keys", func(w *worker, ctx context.Context) { k.keepKeys(ctx, w) })
}

// asOffset replaces the id of a message by that of the Kafka record, whose offset is the entry.
func asOffset(op *history.Op) {
	if id, err := names.ParseMessageID(op.ID); err == nil {
		op.ID = fmt.Sprintf("0:%d:%d:0", id.Entry, id.Partition)
	}
}

// produceSmall is produceKafka with records of some hundred bytes.
func (w *worker) produceSmall(ctx, lasting context.Context, to kafkaTopic) {
	c, err := w.producer()
	if err != nil {
		panic(err) // the options are always valid
	}
	// Only closing the client ends a call to members that do not come back.
	closed := context.AfterFunc(lasting, c.Close)
	defer func() {
		if closed() {
			c.Close()
		}
	}()
	for w.pauseFor(ctx, 2*w.o.Pause) {
		// The history contains the error.
		_ = w.send(lasting, c, to.topic, int32(w.rand.IntN(to.partitions)), w.messageSize())
	}
}

// keepKeys issues keys until there are many, and then replaces one by another.
func (k *Kept) keepKeys(ctx context.Context, w *worker) {
	for w.longPause(ctx) {
		name := fmt.Sprintf("kept-key-%d", w.next)
		object := map[string]any{
			"apiVersion": resources.APIKeys.APIVersion(), "kind": "APIKey", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"serviceAccountName": robot},
		}
		m, start := w.any(), w.recorder.Now()
		made, err := m.resources.Create(ctx, resources.APIKeys, organization, object, resources.WriteOptions{})
		w.recorder.Add(start, w.op(m, history.Issue, name, err))
		if err != nil {
			continue
		}
		k.keysMu.Lock()
		k.keys[name] = made.Text("status", "token")
		if len(k.keys) > maxKeys {
			old := slices.Sorted(maps.Keys(k.keys))[w.rand.IntN(maxKeys)]
			delete(k.keys, old)
			ref := resources.Ref{Kind: resources.APIKeys, Organization: organization, Name: old}
			start := w.recorder.Now()
			_, err := m.resources.Patch(ctx, ref, map[string]any{"spec": map[string]any{"revoke": true}},
				resources.WriteOptions{})
			w.recorder.Add(start, w.op(m, history.Revoke, old, err))
		}
		k.keysMu.Unlock()
	}
}

// AcceptedSince reports whether every topic that keeps its messages has acknowledged one that was
// sent after the given time, and otherwise which has not.
func (k *Kept) AcceptedSince(after time.Duration) (missing string) {
	accepted := map[string]bool{}
	for _, op := range k.recorder.Ops() {
		if op.Kind == history.Produce && op.Outcome == history.OK && op.Start > after {
			accepted[op.Object] = true
		}
	}
	for _, topic := range k.kafkaTopics {
		if !accepted[historyName(topic.topic)] {
			return topic.topic
		}
	}
	return ""
}

// Stop stops the writers, waits up to timeout until the consumed topics are drained, and stops the
// readers. It returns what the subscriptions must have delivered.
func (k *Kept) Stop(ctx context.Context, timeout time.Duration) history.Expect {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	k.stopWriting()
	for k.outstanding() > 0 && ctx.Err() == nil {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	k.stopReading()
	k.writing.Wait()
	k.reading.Wait()
	e := history.Expect{Complete: map[string][]string{}, Single: map[string][]string{}}
	for _, topic := range k.topics {
		e.Complete[topic], e.Single[topic] = []string{shared, single}, []string{single}
	}
	return e
}

func sortedIDs(ids map[string]string) []int {
	var numbers []int
	for id := range ids {
		if n, err := strconv.Atoi(id); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}
