package damage

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// Outcome is how a case ended.
type Outcome string

// Outcomes.
const (
	Healed  Outcome = "healed"       // without a person
	Obeyed  Outcome = "refused+done" // refused with file and command, healed by the command
	Absent  Outcome = "absent"       // the member has no such file
	Intact  Outcome = "intact"       // the check at the end of a run
	Failed  Outcome = "FAILED"
	LogLost Outcome = "LogLost" // several faults at once: closed, and reported
)

// Result is the result of a case.
type Result struct {
	Case    string  `json:"case"`
	Outcome Outcome `json:"outcome"`
	Seed    uint64  `json:"seed"`
	// Member is the damaged member; File and Place are the damage.
	Member string `json:"member,omitempty"`
	File   string `json:"file,omitempty"`
	Place  string `json:"place,omitempty"`
	// Stop is the signal with which the member was stopped.
	Stop string `json:"stop,omitempty"`
	// Seconds is the time from the start of the damaged member until the ensemble was healthy.
	Seconds float64 `json:"seconds"`
	// Outage is the longest time in seconds in which a topic accepted nothing.
	Outage float64 `json:"outage"`
	// Reported is whether status, /readyz or a refusal mentioned the damage; Said is what they said.
	Reported bool     `json:"reported"`
	Said     []string `json:"said,omitempty"`
	Command  string   `json:"command,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Checked counts the acknowledged messages that the last check read; the others count violations.
	Checked    int `json:"checked"`
	Lost       int `json:"lost"`
	Duplicated int `json:"duplicated"`
	Foreign    int `json:"foreign"`
	Wrong      int `json:"wrong"`
	// Logs is the folder with the members' logs of a failed case.
	Logs string `json:"logs,omitempty"`

	began, ended time.Duration // of the case, in the history
}

func (r *Result) fail(format string, args ...any) {
	r.Outcome = Failed
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// maxProblem bounds a problem in the table; the JSON file has all of it.
const maxProblem = 300

// Print writes the results as a table, followed by the problems.
func Print(w io.Writer, results []*Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "case\toutcome\tseconds\toutage\treported\tmember\tstop\tfile") // Flush returns errors
	for _, r := range results {
		reported := "no"
		if r.Reported {
			reported = "yes"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%.1f\t%.1f\t%s\t%s\t%s\t%s\n", r.Case, r.Outcome, r.Seconds, r.Outage,
			reported, r.Member, r.Stop, shortFile(r.File))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, problem := range r.Problems {
			if len(problem) > maxProblem {
				problem = problem[:maxProblem] + "…"
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Case, strings.ReplaceAll(problem, "\n", " | ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// shortFile returns the end of a path, which identifies the file.
func shortFile(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[max(len(parts)-3, 0):], "/")
}

// Write writes the results as JSON.
func Write(path string, results []*Result) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// Summary adds results up.
type Summary struct {
	Outcomes             map[Outcome]int
	Injected, Checked    int
	Lost, Foreign, Wrong int
	Slowest, Outage      time.Duration
}

// Sum adds results up.
func Sum(results []*Result) Summary {
	s := Summary{Outcomes: map[Outcome]int{}}
	for _, r := range results {
		s.Outcomes[r.Outcome]++
		if r.File != "" || r.Place != "" {
			s.Injected++
		}
		s.Checked = max(s.Checked, r.Checked)
		s.Lost, s.Foreign, s.Wrong = s.Lost+r.Lost, s.Foreign+r.Foreign, s.Wrong+r.Wrong+r.Duplicated
		s.Slowest = max(s.Slowest, time.Duration(r.Seconds*float64(time.Second)))
		s.Outage = max(s.Outage, time.Duration(r.Outage*float64(time.Second)))
	}
	return s
}

// String returns the summary in one line.
func (s Summary) String() string {
	return fmt.Sprintf("%d damages: %d healed, %d refused with a command and healed by it, %d closed with LogLost, "+
		"%d failed; %d absent; slowest healing %s, longest outage of a topic %s (goal on an idle machine: 10s)",
		s.Injected, s.Outcomes[Healed], s.Outcomes[Obeyed], s.Outcomes[LogLost], s.Outcomes[Failed], s.Outcomes[Absent],
		s.Slowest.Round(100*time.Millisecond), s.Outage.Round(100*time.Millisecond))
}
