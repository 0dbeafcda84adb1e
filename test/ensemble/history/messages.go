package history

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/names"
)

// belongsToTopic reports whether a delivered message belongs to the operation's topic and partition.
// Damaged messages do not. Other operations always belong to their topic.
func belongsToTopic(r *Report, o *Op) bool {
	if o.Kind != Receive || o.Outcome != OK {
		return true
	}
	if o.Damaged {
		r.add(Wrong, "content damaged", "%s", o)
		return false
	}
	topic, chosen, hasPartition := strings.Cut(o.Origin, "/")
	position, err := names.ParseMessageID(o.ID)
	if topic != "" && topic != o.Object || err == nil && hasPartition &&
		chosen != strconv.Itoa(int(position.Partition)) {
		r.add(Foreign, "a message is delivered under its own topic and partition", "%s", o)
		return false
	}
	return true
}

// topic holds the operations on one topic and the facts derived from them.
type topic struct {
	name string
	ops  []*Op // sorted by their end

	sent      map[string]time.Duration // value: when it was first sent
	acked     map[string]bool          // value: a produce was acknowledged
	contents  map[string]string        // id: value
	ids       map[string]string        // value: id
	positions map[string]names.MessageID
}

func newTopic(name string, ops []*Op) *topic {
	t := &topic{
		name: name, ops: ops,
		sent: map[string]time.Duration{}, acked: map[string]bool{},
		contents: map[string]string{}, ids: map[string]string{}, positions: map[string]names.MessageID{},
	}
	for _, o := range ops {
		if o.Kind != Produce {
			continue
		}
		if at, ok := t.sent[o.Value]; !ok || o.Start < at {
			t.sent[o.Value] = o.Start
		}
		if o.Outcome == OK {
			t.acked[o.Value] = true
		}
	}
	return t
}

// check checks ids, contents, the order of storing, deliveries and losses.
func (t *topic) check(r *Report, complete []string) {
	received := map[string]map[string]bool{} // subscription: values
	for _, o := range t.ops {
		if o.Outcome != OK || o.Kind == Ack {
			continue
		}
		t.checkID(r, o)
		if o.Kind != Receive {
			continue
		}
		if sent, ok := t.sent[o.Value]; !ok {
			r.add(Wrong, "every delivered message was sent", "topic %s: %s", t.name, o)
		} else if o.End < sent {
			r.add(Wrong, "no message is delivered before it was sent", "topic %s: %s, sent at %s", t.name, o, sent)
		}
		if received[o.Subscription] == nil {
			received[o.Subscription] = map[string]bool{}
		}
		if received[o.Subscription][o.Value] {
			r.Redelivered++
		}
		received[o.Subscription][o.Value] = true
	}
	t.checkAppends(r)
	t.checkAcknowledged(r)
	for _, subscription := range complete {
		for _, value := range slices.Sorted(maps.Keys(t.acked)) {
			if !received[subscription][value] {
				r.add(Lost, "every acknowledged message is delivered",
					"topic %s: %s with id %s was never delivered on subscription %s", t.name, value, t.ids[value],
					subscription)
			}
		}
	}
}

// checkID checks that an id has one content and a content one id.
func (t *topic) checkID(r *Report, o *Op) {
	position, err := names.ParseMessageID(o.ID)
	if err != nil {
		r.add(Wrong, "a message has an id", "topic %s: %s: %v", t.name, o, err)
		return
	}
	t.positions[o.ID] = position
	if value, ok := t.contents[o.ID]; !ok {
		t.contents[o.ID] = o.Value
	} else if value != o.Value {
		r.add(Wrong, "an id has one content", "topic %s: %s, which was %s before", t.name, o, value)
	}
	if id, ok := t.ids[o.Value]; !ok {
		t.ids[o.Value] = o.ID
	} else if id != o.ID {
		r.add(Duplicated, "a message is stored once", "topic %s: %s, which has id %s too", t.name, o, id)
	}
}

// checkAppends checks that, of two messages of a partition, the one that was sent after
// the other was acknowledged has the higher position.
func (t *topic) checkAppends(r *Report) {
	partitions := map[int32][]*Op{}
	answered := map[string]bool{}
	for _, o := range t.ops {
		// Of several attempts with one idempotency key the first successful one counts.
		if o.Kind == Produce && o.Outcome == OK && !answered[o.Value] {
			answered[o.Value] = true
			if position, ok := t.positions[o.ID]; ok {
				partitions[position.Partition] = append(partitions[position.Partition], o)
			}
		}
	}
	for _, partition := range sortedKeys(partitions) {
		byEnd := partitions[partition]
		byStart := slices.Clone(byEnd)
		slices.SortStableFunc(byStart, func(a, b *Op) int { return cmp.Compare(t.sent[a.Value], t.sent[b.Value]) })
		var highest *Op // of the messages acknowledged before the next one was sent
		for _, o := range byStart {
			for len(byEnd) > 0 && byEnd[0].End < t.sent[o.Value] {
				if highest == nil || t.positions[byEnd[0].ID].Entry > t.positions[highest.ID].Entry {
					highest = byEnd[0]
				}
				byEnd = byEnd[1:]
			}
			if highest != nil && t.positions[o.ID].Entry <= t.positions[highest.ID].Entry {
				r.add(Wrong, "messages are stored in the order in which they were acknowledged",
					"topic %s: %s, after %s", t.name, o, highest)
			}
		}
	}
}

// checkAcknowledged checks that a message is not delivered to a call that began after the
// acknowledgement had returned.
func (t *topic) checkAcknowledged(r *Report) {
	done := map[[2]string]*Op{}
	for _, o := range t.ops {
		key := [2]string{o.Subscription, o.ID}
		switch {
		case o.Outcome != OK:
		case o.Kind == Ack && done[key] == nil:
			done[key] = o
		case o.Kind == Receive && done[key] != nil && o.Start > done[key].End:
			r.add(Duplicated, "an acknowledged message is not delivered again", "topic %s: %s, after %s",
				t.name, o, done[key])
		}
	}
}

// checkOrder checks that a single consumer sees each message of a partition for the first
// time after all earlier ones. A call without a response may have leased some messages:
// those are delivered later, when their lease has expired.
func (t *topic) checkOrder(r *Report, subscription string) {
	var calls []*Op // without a response
	seen := map[string]bool{}
	highest := map[int32]*Op{}
	for _, o := range t.ops {
		if o.Kind != Receive || o.Subscription != subscription {
			continue
		}
		if o.Outcome != OK {
			calls = append(calls, o)
			continue
		}
		position, ok := t.positions[o.ID]
		if !ok || seen[o.ID] {
			continue
		}
		seen[o.ID] = true
		before := highest[position.Partition]
		if before == nil || t.positions[before.ID].Entry < position.Entry {
			highest[position.Partition] = o
			continue
		}
		if !mayHaveLeased(calls, t.sent[o.Value], o) {
			r.add(Wrong, "a single consumer gets a partition in order", "topic %s: %s, after %s", t.name, o, before)
		}
	}
}

// mayHaveLeased finds a call without a response that may have leased the message, and decrements
// its Max.
func mayHaveLeased(calls []*Op, sent time.Duration, o *Op) bool {
	for _, call := range calls {
		if call.Max > 0 && call.End > sent && call.Start < o.Start {
			call.Max--
			return true
		}
	}
	return false
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
