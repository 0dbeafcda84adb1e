package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/internal/base/names"
	"freshet/test/ensemble/history"
)

// Verification is the result of Verify.
type Verification struct {
	*history.Report
	// Acknowledged counts the messages that had to be there.
	Acknowledged int
	// Unavailable lists what could not be read, and why. It is neither lost nor found.
	Unavailable []string
}

// rereader is the subscription of the messages that Verify reads.
const rereader = "verify"

// Verify reads everything that was acknowledged before the call: every message of the topics that
// keep them, every schema, every committed offset, and uses every key at each of the members. The
// clients may go on meanwhile. After timeout it reports what it could not read as lost or
// unavailable.
func (k *Kept) Verify(ctx context.Context, members []Member, timeout time.Duration, expect history.Expect,
) (*Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	before := k.recorder.Now()
	required := k.required(before)
	l, err := newLoad(k.recorder.Branch(), members, k.o)
	if err != nil {
		return nil, err
	}
	l.kafkaTopics, l.topics = k.kafkaTopics, k.topics
	w := &worker{Load: l, name: rereader, rand: rand.New(rand.NewPCG(k.o.Seed, uint64(before)))}
	v := &Verification{Acknowledged: required.size()}
	// A message that is there is read long before the timeout; the other checks need time, too.
	reading, stop := context.WithTimeout(ctx, timeout*3/4)
	defer stop()
	incomplete := w.readAll(reading, required)
	unserved := map[string]bool{}
	for topic, err := range incomplete {
		if !w.served(ctx, topic) {
			unserved[topic] = true // nobody can read it: its messages are neither lost nor found
		}
		v.Unavailable = append(v.Unavailable, err.Error())
	}
	v.Unavailable = append(v.Unavailable, k.verifySchemas(ctx, w)...)
	v.Unavailable = append(v.Unavailable, k.verifyPositions(ctx, w)...)
	v.Unavailable = append(v.Unavailable, k.verifyKeys(ctx, w)...)
	v.Report = k.check(l.recorder.Ops(), before, expect, unserved)
	return v, nil
}

// messages is the set of messages that must be read, by topic and identity.
type messages map[string]map[string]bool

func (m messages) size() int {
	n := 0
	for _, values := range m {
		n += len(values)
	}
	return n
}

// required returns the messages that were acknowledged before a time.
func (k *Kept) required(before time.Duration) messages {
	kept := messages{}
	for _, topic := range k.kafkaTopics {
		kept[historyName(topic.topic)] = map[string]bool{}
	}
	for _, op := range k.recorder.Ops() {
		if values := kept[op.Object]; values != nil && op.Kind == history.Produce && op.Outcome == history.OK &&
			op.End < before {
			values[op.Value] = true
		}
	}
	return kept
}

// readAll reads the Kafka topics from the start until all required messages were delivered. It
// returns the topics of which it could not read all, and why.
func (w *worker) readAll(ctx context.Context, required messages) map[string]error {
	incomplete := map[string]error{}
	left := messages{}
	for topic, values := range required {
		left[topic] = maps.Clone(values)
	}
	topics := make([]string, len(w.kafkaTopics))
	for i, topic := range w.kafkaTopics {
		topics[i] = topic.topic
	}
	c, err := w.kafkaClient(kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		panic(err) // the options are always valid
	}
	defer c.Close()
	last := map[string]error{}
	for left.size() > 0 && ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil {
				last[historyName(topic)] = fmt.Errorf("partition %d: %w", partition, err)
			}
		})
		var ops []history.Op
		fetches.EachRecord(func(record *kgo.Record) {
			op := history.Op{
				Kind: history.Receive, Client: w.name, Object: historyName(record.Topic), Outcome: history.OK,
				Subscription: rereader, ID: offsetID(record),
			}
			w.delivered(&op, record.Value, record.Topic, record.Partition, historyName)
			delete(left[op.Object], op.Value)
			ops = append(ops, op)
		})
		w.recorder.Add(w.recorder.Now(), ops...)
	}
	for topic, values := range left {
		if len(values) > 0 {
			text := fmt.Sprintf("%d of %d messages of topic %s were not delivered", len(values), len(required[topic]),
				topic)
			incomplete[topic] = errors.Join(errors.New(text), last[topic])
		}
	}
	return incomplete
}

// served reports whether a member serves every partition of a topic of the history.
func (w *worker) served(ctx context.Context, object string) bool {
	c, err := w.kafkaClient(kgo.RetryTimeout(w.o.Timeout))
	if err != nil {
		panic(err) // the options are always valid
	}
	defer c.Close()
	for _, topic := range w.kafkaTopics {
		if historyName(topic.topic) != object {
			continue
		}
		ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic.topic)
		return err == nil && ends.Error() == nil && len(ends[topic.topic]) == topic.partitions
	}
	return false
}

func (k *Kept) verifySchemas(ctx context.Context, w *worker) (unavailable []string) {
	k.mu.Lock()
	ids := sortedIDs(k.ids)
	k.mu.Unlock()
	for _, id := range ids {
		outcome := w.retryUnknown(ctx, func() history.Outcome { return w.readSchema(ctx, w.any(), id) })
		if outcome == history.Unknown {
			unavailable = append(unavailable, fmt.Sprintf("schema %d", id))
		}
	}
	return unavailable
}

func (k *Kept) verifyPositions(ctx context.Context, w *worker) (unavailable []string) {
	c, err := w.kafkaClient()
	if err != nil {
		return []string{err.Error()}
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	for _, group := range k.groups {
		var note string
		outcome := w.retryUnknown(ctx, func() history.Outcome {
			op := w.readPosition(ctx, admin, group, k.kafkaTopics[0].topic)
			note = op.Note
			return op.Outcome
		})
		if outcome == history.Unknown {
			unavailable = append(unavailable, fmt.Sprintf("offset of group %s: %s", group, note))
		}
	}
	return unavailable
}

func (k *Kept) verifyKeys(ctx context.Context, w *worker) (unavailable []string) {
	k.keysMu.Lock()
	defer k.keysMu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(k.keys)) {
		for _, m := range w.members {
			outcome := w.retryUnknown(ctx, func() history.Outcome {
				return w.use(ctx, m, name, k.keys[name], serviceAccounts)
			})
			if outcome == history.Unknown {
				unavailable = append(unavailable, fmt.Sprintf("use of key %s at %s", name, m.Name))
			}
		}
	}
	return unavailable
}

// check checks the history so far together with what Verify has read.
func (k *Kept) check(read []history.Op, before time.Duration, expect history.Expect, unserved map[string]bool,
) *history.Report {
	running := expect.Complete == nil
	if running {
		expect.Complete = map[string][]string{}
	}
	for _, topic := range k.kafkaTopics {
		if object := historyName(topic.topic); !unserved[object] {
			expect.Complete[object] = []string{rereader}
		}
	}
	ops := k.recorder.Ops()
	sent, committed := map[string]bool{}, map[string]int{} // committed is the highest position of a group
	for i := range ops {
		op := &ops[i]
		if op.Kind == history.Commit {
			position, _ := strconv.Atoi(op.Value) // its own
			committed[op.Object] = max(committed[op.Object], position)
		}
		if op.Kind == history.Produce && op.Object != "" {
			sent[op.Object+" "+op.Value] = true
			if expect.Complete[op.Object] != nil && op.Outcome == history.OK && op.End >= before &&
				slices.Contains(expect.Complete[op.Object], rereader) {
				op.Outcome = history.Unknown // acknowledged after Verify began: it may have read it or not
			}
		}
	}
	// A message may be delivered before its producer has the response, and a position read before its committer has it.
	// If the call is still unknown at the next check, or when the clients have stopped, nobody made it.
	early := func(op history.Op) bool {
		switch position, _ := strconv.Atoi(op.Value); {
		case op.Outcome != history.OK:
			return false
		case op.Kind == history.Position:
			return position > committed[op.Object]
		default:
			return op.Kind == history.Receive && !op.Damaged && !sent[op.Object+" "+op.Value]
		}
	}
	var results []history.Op
	ops = slices.DeleteFunc(append(ops, read...), func(op history.Op) bool {
		if running && early(op) {
			results = append(results, op)
			return true
		}
		return false
	})
	for _, op := range k.early {
		if early(op) {
			ops = append(ops, op)
		}
	}
	k.early = results
	return history.Check(ops, expect)
}

// Shortened returns the partitions that end before an acknowledged message, according to a member
// that serves them: messages are lost, and the ensemble does not report it. Partitions that are not
// served are not in the list.
func (k *Kept) Shortened(ctx context.Context, members []Member) ([]string, error) {
	last := map[string]map[int32]int64{} // highest acknowledged offset
	for _, op := range k.recorder.Ops() {
		id, err := names.ParseMessageID(op.ID)
		if op.Kind != history.Produce || op.Outcome != history.OK || err != nil {
			continue
		}
		if last[op.Object] == nil {
			last[op.Object] = map[int32]int64{}
		}
		last[op.Object][id.Partition] = max(last[op.Object][id.Partition], id.Entry)
	}
	l, err := newLoad(k.recorder.Branch(), members, k.o)
	if err != nil {
		return nil, err
	}
	w := &worker{Load: l, name: rereader}
	c, err := w.kafkaClient(kgo.RetryTimeout(k.o.Timeout))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var found []string
	for _, topic := range k.kafkaTopics {
		ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic.topic)
		if err != nil {
			continue // not served
		}
		ends.Each(func(end kadm.ListedOffset) {
			highest, ok := last[historyName(topic.topic)][end.Partition]
			if ok && end.Err == nil && end.Offset <= highest {
				found = append(found, topic.topic+"/"+strconv.Itoa(int(end.Partition))+" ends at "+
					strconv.FormatInt(end.Offset, 10)+", but "+strconv.FormatInt(highest, 10)+" was acknowledged")
			}
		})
	}
	return found, nil
}
