package history

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Class is the class of a violation.
type Class string

// Classes of violations.
const (
	Lost       Class = "lost"
	Duplicated Class = "duplicated"
	Foreign    Class = "foreign"
	Wrong      Class = "wrong"
)

// Violation is a violated guarantee.
type Violation struct {
	Class Class
	// Rule is the guarantee in a few words, Text the observed violation.
	Rule, Text string
}

// String returns the violation as text.
func (v Violation) String() string { return fmt.Sprintf("%s (%s): %s", v.Class, v.Rule, v.Text) }

// Gap is a period in which calls on a topic failed or hung and none succeeded.
type Gap struct {
	Topic string
	// Began is the time of the last successful call before the gap, since the recorder
	// was created. The gap ends with the next successful call.
	Began, Length time.Duration
	// Errors counts the errors in the gap, by member and text.
	Errors map[string]int
}

// String returns the gap in one line.
func (g Gap) String() string {
	return fmt.Sprintf("%s %s, from %.2fs on", g.Length.Round(10*time.Millisecond), g.Topic, g.Began.Seconds())
}

// Report is the result of a check.
type Report struct {
	// Operations counts operations by kind and outcome.
	Operations map[Kind]map[Outcome]int
	// Redelivered counts repeated deliveries of messages whose acknowledgement had not
	// returned: at-least-once delivery allows them.
	Redelivered int
	// Gaps are the periods in which a topic accepted nothing, the longest first.
	Gaps []Gap
	// Violations are in the order in which they were detected.
	Violations []Violation
}

func (r *Report) add(class Class, rule, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{class, rule, fmt.Sprintf(format, args...)})
}

// Count returns the number of violations of a class.
func (r *Report) Count(class Class) int {
	n := 0
	for _, v := range r.Violations {
		if v.Class == class {
			n++
		}
	}
	return n
}

// Total returns the number of operations with an outcome; "" means all.
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

// maxShown bounds the number of printed violations of a rule.
const maxShown = 5

// Print writes the report as text.
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
	fmt.Fprintf(&b, "redelivered             %d (allowed)\n", r.Redelivered)
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
