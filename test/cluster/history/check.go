package history

import (
	"cmp"
	"slices"
	"time"
)

// Expect says what a history has to be complete in.
type Expect struct {
	// Complete are subscriptions by topic that were there before the first message
	// and were drained after the last: every acknowledged message is on them.
	Complete map[string][]string
	// Single are subscriptions by topic that one client alone consumes, one call
	// after another: it gets each partition in order.
	Single map[string][]string
}

// Check looks for broken promises.
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
		if o.Outcome == Absurd {
			r.add(Wrong, "answers are right or honest errors", "%s", o)
			o.Outcome = Unknown
		}
		switch o.Kind {
		case Produce, Receive, Ack:
			messages[o.Thing] = append(messages[o.Thing], o)
		case Create, Delete, Look:
			named = append(named, o)
		case Register, Read:
			schemas = append(schemas, o)
		case Issue, Use, Revoke:
			keys = append(keys, o)
		case Commit, Position:
			positions = append(positions, o)
		case Finish:
			if o.Outcome != OK {
				r.add(Wrong, "nothing is half made for ever", "%s", o)
			}
		}
	}
	for _, topic := range sortedKeys(messages) {
		t := newTopic(topic, messages[topic])
		t.check(r, expect.Complete[topic])
		for _, subscription := range expect.Single[topic] {
			t.checkOrder(r, subscription)
		}
		t.gap(r)
	}
	checkNames(r, named)
	checkSchemas(r, schemas)
	checkKeys(r, keys)
	checkPositions(r, positions)
	return r
}

// gap finds the longest time in which calls failed and none succeeded.
func (t *topic) gap(r *Report) {
	last, failed := time.Duration(-1), false
	for _, o := range t.ops {
		if o.Kind != Produce {
			continue
		}
		if o.Outcome != OK {
			failed = true
			continue
		}
		if last >= 0 && failed && o.End-last > r.Gap {
			r.Gap, r.GapOf = o.End-last, t.name
		}
		last, failed = o.End, false
	}
}
