package load

import (
	"testing"
	"time"

	"freshet/test/ensemble/history"
)

// TestVerifyCheck checks which violations the check of kept data finds. The clients go on while it
// reads, so that messages and positions whose response comes late are neither lost nor foreign.
func TestVerifyCheck(t *testing.T) {
	t.Parallel()
	const topic = "stream kept-0"
	produced := func(value, id string) history.Op {
		return history.Op{Kind: history.Produce, Outcome: history.OK, Client: "p", Object: topic, Value: value, ID: id}
	}
	read := func(value, id string) history.Op {
		return history.Op{
			Kind: history.Receive, Outcome: history.OK, Client: rereader, Object: topic, Subscription: rereader,
			Value: value, ID: id, Origin: topic + "/0",
		}
	}
	position := func(kind history.Kind, value string) history.Op {
		return history.Op{Kind: kind, Outcome: history.OK, Client: "c", Object: "kept-group-0", Value: value}
	}
	damaged := read("", "0:1:0:0")
	damaged.Damaged = true
	tests := map[string]struct {
		before, during, read []history.Op
		unserved             bool
		again                bool // a second check
		want                 history.Class
	}{
		"everything": {
			before: []history.Op{produced("a", "0:0:0:0")}, read: []history.Op{read("a", "0:0:0:0")},
		},
		"lost":                          {before: []history.Op{produced("a", "0:0:0:0")}, want: history.Lost},
		"not served":                    {before: []history.Op{produced("a", "0:0:0:0")}, unserved: true},
		"acknowledged during the read":  {during: []history.Op{produced("a", "0:0:0:0")}},
		"read before its response":      {read: []history.Op{read("a", "0:0:0:0")}},
		"delivered before its response": {before: []history.Op{read("a", "0:0:0:0")}},
		"never sent":                    {read: []history.Op{read("a", "0:0:0:0")}, again: true, want: history.Wrong},
		"two contents": {
			before: []history.Op{produced("a", "0:0:0:0"), produced("b", "0:0:0:0")},
			read:   []history.Op{read("a", "0:0:0:0"), read("b", "0:0:0:0")}, want: history.Wrong,
		},
		"stored twice": {
			before: []history.Op{produced("a", "0:0:0:0")},
			read:   []history.Op{read("a", "0:0:0:0"), read("a", "0:1:0:0")}, want: history.Duplicated,
		},
		"position": {
			before: []history.Op{position(history.Commit, "7")}, read: []history.Op{position(history.Position, "7")},
		},
		"position lost": {
			before: []history.Op{position(history.Commit, "7")}, read: []history.Op{position(history.Position, "6")},
			want: history.Lost,
		},
		"position read before its response": {
			before: []history.Op{position(history.Commit, "7")}, read: []history.Op{position(history.Position, "8")},
		},
		"position never committed": {
			before: []history.Op{position(history.Commit, "7")}, read: []history.Op{position(history.Position, "8")},
			again: true, want: history.Wrong,
		},
		"damaged": {read: []history.Op{damaged}, want: history.Wrong},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := history.New()
			k := &Kept{Load: &Load{recorder: recorder, kafkaTopics: []kafkaTopic{{"kept-0", 1}}}}
			recorder.Add(0, tc.before...)
			before := recorder.Now() + time.Nanosecond
			for recorder.Now() <= before { // the clock of the next operations is later
				continue
			}
			recorder.Add(before, tc.during...)
			unserved := map[string]bool{topic: tc.unserved}
			reads := recorder.Branch()
			reads.Add(before, tc.read...)
			report := k.check(reads.Ops(), before, history.Expect{}, unserved)
			if tc.again {
				if n := len(report.Violations); n > 0 {
					t.Errorf("first check: got %v, want no violation", report.Violations)
				}
				report = k.check(nil, before, history.Expect{}, unserved)
			}
			if tc.want == "" && len(report.Violations) > 0 || tc.want != "" && report.Count(tc.want) == 0 {
				t.Errorf("got %v, want %q", report.Violations, tc.want)
			}
		})
	}
}
