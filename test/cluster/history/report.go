package history

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Class says how bad a violation is, and of what kind.
type Class string

// Classes of violations.
const (
	Lost       Class = "lost"
	Duplicated Class = "duplicated"
	Foreign    Class = "foreign"
	Wrong      Class = "wrong"
)

// Violation is a promise that was broken.
type Violation struct {
	Class Class
	// Rule is the promise in a few words, Text what happened instead.
	Rule, Text string
}

// String is the violation in a line.
func (v Violation) String() string { return fmt.Sprintf("%s (%s): %s", v.Class, v.Rule, v.Text) }

// Gap is a time in which calls on a topic failed or hung and none succeeded.
type Gap struct {
	Topic string
	// Began is when the last call before it succeeded, since the recorder was made;
	// it ends with the first that does again.
	Began, Length time.Duration
	// Said counts what callers were told meanwhile: the member, and its error.
	Said map[string]int
}

// String is the gap in a line.
func (g Gap) String() string {
	return fmt.Sprintf("%s %s, from %.2fs on", g.Length.Round(10*time.Millisecond), g.Topic, g.Began.Seconds())
}

// Report is what a check found.
type Report struct {
	// Operations counts by kind and outcome.
	Operations map[Kind]map[Outcome]int
	// Redelivered counts deliveries of messages that had been delivered before and
	// whose acknowledgement had not returned: at least once allows them.
	Redelivered int
	// Gaps are the times in which a topic took nothing, the longest first.
	Gaps []Gap
	// Violations are in the order in which they were found.
	Violations []Violation
}

func (r *Report) add(class Class, rule, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{class, rule, fmt.Sprintf(format, args...)})
}

// Count is how many violations are of a class.
func (r *Report) Count(class Class) int {
	n := 0
	for _, v := range r.Violations {
		if v.Class == class {
			n++
		}
	}
	return n
}

// Total counts operations with an outcome; "" is all.
func (r *Report) Total(outcome Outcome) int {
	n := 0
	for _, by := range r.Operations {
		for o, count := range by {
			if outcome == "" || o == outcome {
				n += count
			}
		}
	}
	return n
}

// maxShown is how many violations of a rule are printed.
const maxShown = 5

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "operations              %d: %d done, %d refused, %d unknown\n", r.Total(""), r.Total(OK),
		r.Total(Refused), r.Total(Unknown))
	for _, kind := range slices.Sorted(maps.Keys(r.Operations)) {
		by := r.Operations[kind]
		fmt.Fprintf(&b, "  %-22s%d done, %d refused, %d unknown\n", kind, by[OK], by[Refused], by[Unknown])
	}
	for _, class := range []Class{Lost, Duplicated, Foreign, Wrong} {
		fmt.Fprintf(&b, "%-24s%d\n", class, r.Count(class))
	}
	fmt.Fprintf(&b, "delivered again         %d (allowed)\n", r.Redelivered)
	longest := "0s"
	if len(r.Gaps) > 0 {
		longest = r.Gaps[0].String()
	}
	fmt.Fprintf(&b, "longest without owner   %s\n", longest)
	shown := map[string]int{}
	for _, v := range r.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= maxShown {
			fmt.Fprintln(&b, v)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
