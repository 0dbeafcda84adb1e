package history_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/test/ensemble/history"
)

const s = time.Second

// validHistory returns a history without violations, although calls were interrupted and messages
// were redelivered.
func validHistory() []history.Op {
	op := func(kind history.Kind, outcome history.Outcome, start, end time.Duration, more history.Op) history.Op {
		more.Kind, more.Outcome, more.Start, more.End, more.Client = kind, outcome, start, end, "c"
		return more
	}
	message := func(value, id string) history.Op { return history.Op{Object: "t", Value: value, ID: id} }
	delivery := func(value, id string) history.Op {
		return history.Op{Object: "t", Subscription: "one", Value: value, ID: id}
	}
	name := history.Op{Object: "topic/x"}
	key := history.Op{Object: "key"}
	return []history.Op{
		op(history.Produce, history.OK, 1*s, 2*s, message("a", "1:0:0:0")),
		op(history.Produce, history.OK, 3*s, 4*s, message("b", "1:1:0:0")),
		op(history.Produce, history.Unknown, 5*s, 6*s, message("cut off", "")),
		op(history.Produce, history.OK, 7*s, 8*s, message("c", "1:3:0:0")),
		op(history.Produce, history.OK, 7*s, 9*s, message("c", "1:3:0:0")), // retried with its idempotency key
		op(history.Receive, history.OK, 10*s, 11*s, delivery("a", "1:0:0:0")),
		op(history.Ack, history.Unknown, 12*s, 13*s, delivery("a", "1:0:0:0")),
		// Leases b.
		op(history.Receive, history.Unknown, 14*s, 15*s, history.Op{Object: "t", Subscription: "one", Max: 1}),
		op(history.Receive, history.OK, 16*s, 17*s, delivery("cut off", "1:2:0:0")),
		op(history.Receive, history.OK, 18*s, 19*s, delivery("b", "1:1:0:0")),
		op(history.Receive, history.OK, 20*s, 21*s, delivery("a", "1:0:0:0")), // redelivered
		op(history.Ack, history.OK, 22*s, 23*s, delivery("a", "1:0:0:0")),
		op(history.Receive, history.OK, 24*s, 25*s, delivery("c", "1:3:0:0")),
		op(history.Produce, history.OK, 26*s, 27*s, message("d", "1:4:2:0")), // to a partition chosen by the producer
		op(history.Receive, history.OK, 28*s, 29*s, history.Op{
			Object: "t", Subscription: "one", Value: "d", ID: "1:4:2:0", Origin: "t/2",
		}),

		op(history.Create, history.Unknown, 1*s, 2*s, name),
		op(history.Lookup, history.Refused, 3*s, 4*s, name),
		op(history.Lookup, history.OK, 5*s, 6*s, name), // the creation has taken effect
		op(history.Create, history.Refused, 7*s, 8*s, name),
		op(history.Delete, history.OK, 9*s, 10*s, name),
		op(history.Delete, history.Refused, 11*s, 12*s, name),
		op(history.Lookup, history.Refused, 13*s, 14*s, name),

		op(history.Register, history.OK, 1*s, 2*s, history.Op{Object: "subject", Value: "schema", ID: "1"}),
		op(history.Read, history.Refused, 1*s, 3*s, history.Op{ID: "1"}), // concurrent with the registration
		op(history.Read, history.OK, 3*s, 4*s, history.Op{ID: "1", Value: "schema"}),

		op(history.Issue, history.OK, 1*s, 2*s, key),
		op(history.Use, history.OK, 3*s, 4*s, key),
		op(history.Revoke, history.OK, 5*s, 7*s, key),
		op(history.Use, history.OK, 6*s, 8*s, key), // concurrent with the revocation
		op(history.Use, history.Refused, 9*s, 10*s, key),

		op(history.Commit, history.OK, 1*s, 2*s, history.Op{Object: "group", Value: "1"}),
		op(history.Commit, history.Unknown, 3*s, 4*s, history.Op{Object: "group", Value: "2"}),
		op(history.Position, history.OK, 5*s, 6*s, history.Op{Object: "group", Value: "1"}),
		op(history.Position, history.OK, 7*s, 8*s, history.Op{Object: "group", Value: "2"}),

		op(history.Finish, history.OK, 30*s, 31*s, name),
	}
}

var expect = history.Expect{Complete: map[string][]string{"t": {"one"}}, Single: map[string][]string{"t": {"one"}}}

func TestValidHistory(t *testing.T) {
	t.Parallel()
	report := history.Check(validHistory(), expect)
	if len(report.Violations) > 0 {
		t.Errorf("violations: got %v, want none", report.Violations)
	}
	if report.Redelivered != 1 {
		t.Errorf("redelivered: got %d, want 1", report.Redelivered)
	}
	// b was stored at 4 s, then a call failed, c was stored at 8 s.
	if len(report.Gaps) != 1 || report.Gaps[0].String() != "4s t, from 4.00s on" || len(report.Gaps[0].Errors) != 1 {
		t.Errorf("gaps: got %v, want one of 4s of t", report.Gaps)
	}
	if got, want := report.Total(""), len(validHistory()); got != want {
		t.Errorf("operations: got %d, want %d", got, want)
	}
	var text bytes.Buffer
	err := report.Print(&text)
	for _, want := range []string{"lost                    0\n", "foreign                 0\n"} {
		if err != nil || !strings.Contains(text.String(), want) {
			t.Errorf("report: got %s, %v; want %s", &text, err, want)
		}
	}
}

// TestLate checks that a late response counts as a gap: clients that retry internally see
// an unavailable topic that way.
func TestLate(t *testing.T) {
	t.Parallel()
	produced := func(start, end time.Duration, id string) history.Op {
		return history.Op{
			Kind: history.Produce, Outcome: history.OK, Start: start, End: end, Object: "t",
			Value: id, ID: id,
		}
	}
	report := history.Check([]history.Op{
		produced(0, s, "1:0:0:0"), produced(2*s, 9*s, "1:1:0:0"),
		produced(10*s, 11*s, "1:2:0:0"),
	}, history.Expect{})
	if len(report.Gaps) != 1 || report.Gaps[0].String() != "8s t, from 1.00s on" {
		t.Errorf("gaps: got %v, want one of 8s of t", report.Gaps)
	}
}

const ruleOwnPartition = "a message is delivered under its own topic and partition"

// TestForeignCountsOnce checks that a foreign message in the place of another counts as
// one foreign and one lost message and as no other violation.
func TestForeignCountsOnce(t *testing.T) {
	t.Parallel()
	ops := validHistory()
	i := slices.IndexFunc(ops, func(o history.Op) bool { return o.Kind == history.Receive && o.Value == "c" })
	ops[i].Value, ops[i].Origin = "x", "other"
	report := history.Check(ops, expect)
	if report.Count(history.Foreign) != 1 || report.Count(history.Lost) != 1 || len(report.Violations) != 2 {
		t.Errorf("got %v, want one foreign and one lost", report.Violations)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "foreign                 1\n") {
		t.Errorf("report: got %s, %v; want foreign 1", &text, err)
	}
}

// TestViolations breaks each guarantee in a history without violations.
func TestViolations(t *testing.T) {
	t.Parallel()
	type ops = []history.Op
	add := func(op history.Op) func(ops) ops { return func(o ops) ops { return append(o, op) } }
	find := func(o ops, kind history.Kind, match func(history.Op) bool) int {
		return slices.IndexFunc(o, func(op history.Op) bool { return op.Kind == kind && match(op) })
	}
	value := func(v string) func(history.Op) bool { return func(op history.Op) bool { return op.Value == v } }
	received := func(v, id string, start time.Duration) history.Op {
		return history.Op{
			Kind: history.Receive, Outcome: history.OK, Start: start, End: start + s, Object: "t",
			Subscription: "one", Value: v, ID: id,
		}
	}
	for name, test := range map[string]struct {
		class  history.Class
		rule   string
		doctor func(ops) ops
	}{
		"message lost": {history.Lost, "every acknowledged message is delivered", func(o ops) ops {
			i := find(o, history.Receive, value("c"))
			return slices.Delete(o, i, i+1)
		}},
		"id with two contents": {history.Wrong, "an id has one content", func(o ops) ops {
			o[find(o, history.Receive, value("c"))].ID = "1:1:0:0"
			return o
		}},
		"stored twice under a key": {history.Duplicated, "a message is stored once", func(o ops) ops {
			o[find(o, history.Produce, func(op history.Op) bool { return op.End == 9*s })].ID = "1:4:0:0"
			return o
		}},
		"one attempt stored twice": {
			history.Duplicated, "a message is stored once",
			add(received("b", "1:5:0:0", 40*s)),
		},
		"delivered under another topic": {history.Foreign, ruleOwnPartition, func(o ops) ops {
			o[find(o, history.Receive, value("c"))].Origin = "other"
			return o
		}},
		"delivered under another partition": {history.Foreign, ruleOwnPartition, func(o ops) ops {
			o[find(o, history.Receive, value("d"))].Origin = "t/1"
			return o
		}},
		"foreign instead of its own": {history.Lost, "every acknowledged message is delivered", func(o ops) ops {
			i := find(o, history.Receive, value("c"))
			o[i].Value, o[i].Origin = "of another topic", "other/0"
			return o
		}},
		"content damaged": {history.Wrong, "content damaged", func(o ops) ops {
			i := find(o, history.Receive, value("c"))
			o[i].Value, o[i].Damaged = "", true
			return o
		}},
		"message that was not sent": {
			history.Wrong, "every delivered message was sent",
			add(received("z", "1:6:0:0", 40*s)),
		},
		"message from the future": {history.Wrong, "no message is delivered before it was sent", func(o ops) ops {
			return append(o, received("a", "1:0:0:0", -s))
		}},
		"stored before an older one": {
			history.Wrong,
			"messages are stored in the order in which they were acknowledged", add(history.Op{
				Kind: history.Produce, Outcome: history.OK, Start: 9500 * time.Millisecond, End: 10 * s, Object: "t",
				Value: "late", ID: "1:2:0:0",
			}),
		},
		"delivered after its acknowledgement": {
			history.Duplicated, "an acknowledged message is not delivered again",
			add(received("a", "1:0:0:0", 40*s)),
		},
		"out of order": {history.Wrong, "a single consumer gets a partition in order", func(o ops) ops {
			o[find(o, history.Receive, func(op history.Op) bool { return op.Outcome == history.Unknown })].Max = 0
			return o
		}},
		"name that was not created": {
			history.Wrong, "calls on a name are linearizable",
			func(o ops) ops {
				i := find(o, history.Create, func(op history.Op) bool { return op.Outcome == history.Unknown })
				return slices.Delete(o, i, i+1)
			},
		},
		"stale lookup": {history.Wrong, "calls on a name are linearizable", add(history.Op{
			Kind: history.Lookup, Outcome: history.OK, Start: 40 * s, End: 41 * s, Object: "topic/x",
		})},
		"schema id with two contents": {history.Wrong, "an id belongs to one schema", add(history.Op{
			Kind: history.Read, Outcome: history.OK, Start: 40 * s, End: 41 * s, ID: "1", Value: "another",
		})},
		"schema with two ids": {history.Duplicated, "a schema has one id", add(history.Op{
			Kind: history.Register, Outcome: history.OK, Start: 40 * s, End: 41 * s, Object: "subject", ID: "2",
			Value: "schema",
		})},
		"schema lost": {history.Lost, "a schema that has an id can be read", add(history.Op{
			Kind: history.Read, Outcome: history.Refused, Start: 40 * s, End: 41 * s, ID: "1",
		})},
		"revoked key works": {history.Wrong, "no key works after its revocation has returned", add(history.Op{
			Kind: history.Use, Outcome: history.OK, Start: 40 * s, End: 41 * s, Object: "key",
		})},
		"valid key refused": {history.Wrong, "a key works until it is revoked", add(history.Op{
			Kind: history.Use, Outcome: history.Refused, Start: 3 * s, End: 4 * s, Object: "key",
		})},
		"refused without a reason": {history.Wrong, "responses are correct or errors", add(history.Op{
			Kind: history.Produce, Outcome: history.Unexpected, Start: 40 * s, End: 41 * s, Object: "t", Value: "n",
			Note: "topic not found",
		})},
		"position lost": {history.Lost, "a group's position is the last committed one", add(history.Op{
			Kind: history.Position, Outcome: history.OK, Start: 40 * s, End: 41 * s, Object: "group", Value: "0",
		})},
		"position that was not committed": {history.Wrong, "a group's position was committed", add(history.Op{
			Kind: history.Position, Outcome: history.OK, Start: 40 * s, End: 41 * s, Object: "group", Value: "3",
		})},
		"incomplete object": {history.Wrong, "no object stays incomplete", add(history.Op{
			Kind: history.Finish, Outcome: history.Refused, Start: 40 * s, End: 41 * s, Object: "topic/y",
			Note: "listed but not usable",
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := history.Check(test.doctor(validHistory()), expect)
			found := slices.ContainsFunc(report.Violations, func(v history.Violation) bool {
				return v.Class == test.class && v.Rule == test.rule
			})
			if !found {
				t.Errorf("got %v, want %s: %s", report.Violations, test.class, test.rule)
			}
		})
	}
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	r := history.New()
	start := r.Now()
	r.Add(start, history.Op{Kind: history.Lookup, Outcome: history.OK, Client: "c", Object: "topic/x"})
	ops := r.Ops()
	if r.Len() != 1 || ops[0].Start != start || ops[0].End < start {
		t.Fatalf("got %v, want one operation that began at %s", ops, start)
	}
	var text bytes.Buffer
	if err := history.Write(&text, ops); err != nil {
		t.Fatal(err)
	}
	var back history.Op
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back != ops[0] {
		t.Errorf("written and read: got %v, %v; want %v", back, err, ops[0])
	}
}
