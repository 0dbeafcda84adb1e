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
			if own(r, o) {
				messages[o.Thing] = append(messages[o.Thing], o)
			}
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
		r.Gaps = append(r.Gaps, t.gaps()...)
	}
	slices.SortStableFunc(r.Gaps, func(a, b Gap) int { return cmp.Compare(b.Length, a.Length) })
	checkNames(r, named)
	checkSchemas(r, schemas)
	checkKeys(r, keys)
	checkPositions(r, positions)
	return r
}

// late is when the answer to a call that succeeded is one that clients complain about.
// Clients of the stream protocol repeat by themselves: all they see is a late answer.
const late = 2 * time.Second

// gaps finds the times in which calls failed or hung and none succeeded.
func (t *topic) gaps() (found []Gap) {
	last, said := time.Duration(-1), map[string]int{}
	for _, o := range t.ops {
		switch {
		case o.Kind != Produce:
		case o.Outcome != OK:
			said[o.Member+": "+o.Note]++
		default:
			if o.End-max(o.Start, last) > late {
				said["nobody: the answer was late"]++
			}
			if last >= 0 && len(said) > 0 {
				found = append(found, Gap{Topic: t.name, Began: last, Length: o.End - last, Said: said})
			}
			last, said = o.End, map[string]int{}
		}
	}
	return found
}
