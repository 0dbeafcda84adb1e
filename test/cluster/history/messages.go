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

// own reports whether an operation is about a message of its topic. A delivered message
// that is damaged, or that its producer sent to another topic or partition, is not.
func own(r *Report, o *Op) bool {
	if o.Kind != Receive || o.Outcome != OK {
		return true
	}
	if o.Damaged {
		r.add(Wrong, "content damaged", "%s", o)
		return false
	}
	topic, chosen, hasPartition := strings.Cut(o.Origin, "/")
	place, err := names.ParseMessageID(o.ID)
	if topic != "" && topic != o.Thing || err == nil && hasPartition && chosen != strconv.Itoa(int(place.Partition)) {
		r.add(Foreign, "a message is delivered under its own topic and partition", "%s", o)
		return false
	}
	return true
}

// topic is what clients did with one topic, and what follows from it.
type topic struct {
	name string
	ops  []*Op // by their end

	sent     map[string]time.Duration // value: when it was first sent
	acked    map[string]bool          // value: a produce was acknowledged
	contents map[string]string        // id: value
	ids      map[string]string        // value: id
	places   map[string]names.MessageID
}

func newTopic(name string, ops []*Op) *topic {
	t := &topic{
		name: name, ops: ops,
		sent: map[string]time.Duration{}, acked: map[string]bool{},
		contents: map[string]string{}, ids: map[string]string{}, places: map[string]names.MessageID{},
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

// check looks at contents, copies, order of storing, deliveries and losses.
func (t *topic) check(r *Report, complete []string) {
	received := map[string]map[string]bool{} // subscription: values
	for _, o := range t.ops {
		if o.Outcome != OK || o.Kind == Ack {
			continue
		}
		t.place(r, o)
		if o.Kind != Receive {
			continue
		}
		if sent, ok := t.sent[o.Value]; !ok {
			r.add(Wrong, "no message that nobody sent", "topic %s: %s", t.name, o)
		} else if o.End < sent {
			r.add(Wrong, "no message before it was sent", "topic %s: %s, sent at %s", t.name, o, sent)
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
					"topic %s: %s with id %s never came on subscription %s", t.name, value, t.ids[value], subscription)
			}
		}
	}
}

// place holds one id against one content, both ways.
func (t *topic) place(r *Report, o *Op) {
	place, err := names.ParseMessageID(o.ID)
	if err != nil {
		r.add(Wrong, "a message has an id", "topic %s: %s: %v", t.name, o, err)
		return
	}
	t.places[o.ID] = place
	if value, ok := t.contents[o.ID]; !ok {
		t.contents[o.ID] = o.Value
	} else if value != o.Value {
		r.add(Wrong, "no id with two contents", "topic %s: %s, which was %s before", t.name, o, value)
	}
	if id, ok := t.ids[o.Value]; !ok {
		t.ids[o.Value] = o.ID
	} else if id != o.ID {
		r.add(Duplicated, "a message is stored once", "topic %s: %s, which has id %s too", t.name, o, id)
	}
}

// checkAppends: of two messages of a partition the one that was sent after the
// other was acknowledged has the higher place.
func (t *topic) checkAppends(r *Report) {
	partitions := map[int32][]*Op{}
	answered := map[string]bool{}
	for _, o := range t.ops {
		// Of several attempts under one key the first that was answered counts.
		if o.Kind == Produce && o.Outcome == OK && !answered[o.Value] {
			answered[o.Value] = true
			if place, ok := t.places[o.ID]; ok {
				partitions[place.Partition] = append(partitions[place.Partition], o)
			}
		}
	}
	for _, partition := range sortedKeys(partitions) {
		byEnd := partitions[partition]
		byStart := slices.Clone(byEnd)
		slices.SortStableFunc(byStart, func(a, b *Op) int { return cmp.Compare(t.sent[a.Value], t.sent[b.Value]) })
		var highest *Op // of those that were acknowledged before the next one was sent
		for _, o := range byStart {
			for len(byEnd) > 0 && byEnd[0].End < t.sent[o.Value] {
				if highest == nil || t.places[byEnd[0].ID].Entry > t.places[highest.ID].Entry {
					highest = byEnd[0]
				}
				byEnd = byEnd[1:]
			}
			if highest != nil && t.places[o.ID].Entry <= t.places[highest.ID].Entry {
				r.add(Wrong, "messages are stored in the order in which they were acknowledged",
					"topic %s: %s, behind %s", t.name, o, highest)
			}
		}
	}
}

// checkAcknowledged: what a returned call has acknowledged is not delivered again
// to a call that began afterwards.
func (t *topic) checkAcknowledged(r *Report) {
	done := map[[2]string]*Op{}
	for _, o := range t.ops {
		key := [2]string{o.Subscription, o.ID}
		switch {
		case o.Outcome != OK:
		case o.Kind == Ack && done[key] == nil:
			done[key] = o
		case o.Kind == Receive && done[key] != nil && o.Start > done[key].End:
			r.add(Duplicated, "what is acknowledged is not delivered again", "topic %s: %s, after %s",
				t.name, o, done[key])
		}
	}
}

// checkOrder: a single consumer sees each message of a partition for the first
// time after all before it. A call of its that got no answer may have taken some:
// those come later, when their lease is over.
func (t *topic) checkOrder(r *Report, subscription string) {
	var calls []*Op // without an answer
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
		place, ok := t.places[o.ID]
		if !ok || seen[o.ID] {
			continue
		}
		seen[o.ID] = true
		before := highest[place.Partition]
		if before == nil || t.places[before.ID].Entry < place.Entry {
			highest[place.Partition] = o
			continue
		}
		if !excuse(calls, t.sent[o.Value], o) {
			r.add(Wrong, "a single consumer gets a partition in order", "topic %s: %s, after %s", t.name, o, before)
		}
	}
}

// excuse finds a call without an answer that may have taken the message, and uses
// it up by one.
func excuse(calls []*Op, sent time.Duration, o *Op) bool {
	for _, call := range calls {
		if call.Max > 0 && call.End > sent && call.Start < o.Start {
			call.Max--
			return true
		}
	}
	return false
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
