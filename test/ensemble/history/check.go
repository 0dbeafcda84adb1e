package history

import (
	"cmp"
	"slices"
	"time"
)

// Expect describes in which respects a history is complete.
type Expect struct {
	// Complete lists, by topic, subscriptions that existed before the first message and
	// were drained after the last: they must have delivered every acknowledged message.
	Complete map[string][]string
	// Single lists, by topic, subscriptions with a single consumer that makes one call
	// after another: it must get each partition in order.
	Single map[string][]string
}

// Check checks a history for violated guarantees.
func Check(ops []Op, expect Expect) *Report {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.End, b.End) })
	r := &Report{Operations: map[Kind]map[Outcome]int{}}
	messages := map[string][]*Op{} // by topic
	var named, schemas, keys, positions []*Op
	for i := range ops {
		o := &ops[i]
		if r.Operations[o.Kind] == nil {
			r.Operations[o.Kind] = map[Outcome]int{}
		}
		r.Operations[o.Kind][o.Outcome]++
		if o.Outcome == Unexpected {
			r.add(Wrong, "responses are correct or errors", "%s", o)
			o.Outcome = Unknown
		}
		switch o.Kind {
		case Produce, Receive, Ack:
			if belongsToTopic(r, o) {
				messages[o.Object] = append(messages[o.Object], o)
			}
		case Create, Delete, Lookup:
			named = append(named, o)
		case Register, Read:
			schemas = append(schemas, o)
		case Issue, Use, Revoke:
			keys = append(keys, o)
		case Commit, Position:
			positions = append(positions, o)
		case Finish:
			if o.Outcome != OK {
				r.add(Wrong, "no object stays incomplete", "%s", o)
			}
		}
	}
	for _, topic := range sortedKeys(messages) {
		t := newTopic(topic, messages[topic])
		t.check(r, expect.Complete[topic])
		for _, subscription := range expect.Single[topic] {
			t.checkOrder(r, subscription)
		}
		r.Gaps = append(r.Gaps, t.gaps()...)
	}
	slices.SortStableFunc(r.Gaps, func(a, b Gap) int { return cmp.Compare(b.Length, a.Length) })
	checkNames(r, named)
	checkSchemas(r, schemas)
	checkKeys(r, keys)
	checkPositions(r, positions)
	return r
}

// lateResponse is the duration from which a successful call counts as a gap. Kafka clients retry
// internally: they see an unavailable topic only as a late response.
const lateResponse = 2 * time.Second

// gaps finds the periods in which calls failed or hung and none succeeded.
func (t *topic) gaps() (found []Gap) {
	last, failures := time.Duration(-1), map[string]int{}
	for _, o := range t.ops {
		switch {
		case o.Kind != Produce:
		case o.Outcome != OK:
			failures[o.Member+": "+o.Note]++
		default:
			if o.End-max(o.Start, last) > lateResponse {
				failures["no error: the response was late"]++
			}
			if last >= 0 && len(failures) > 0 {
				found = append(found, Gap{Topic: t.name, Began: last, Length: o.End - last, Errors: failures})
			}
			last, failures = o.End, map[string]int{}
		}
	}
	return found
}
