package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"freshet/test/ensemble/history"
	"freshet/test/ensemble/load"
)

// Fault is a fault that can be injected into a running system.
type Fault struct {
	// Name identifies the fault in reports and in FRESHET_FAULTS.
	Name string
	// Hold is the maximum duration; the actual one is random, at least half of it.
	Hold time.Duration
	// Inject injects the fault and returns the function that heals it. ctx is that of the whole run.
	Inject func(ctx context.Context) (heal func(ctx context.Context) error, err error)
}

// Run combines clients and faults for some time.
type Run struct {
	Members []*Member
	Load    load.Options
	Faults  []Fault
	// Plan determines the order and times of the faults.
	Plan Plan
	// Log receives a line for each fault.
	Log io.Writer
	// History is a file for all operations, written if a guarantee was violated; "" writes none.
	History string
	// DrainTimeout is the timeout for the delivery of all messages at the end.
	DrainTimeout time.Duration
}

// Result is the result of a run.
type Result struct {
	*history.Report
	Seed   uint64
	Took   time.Duration
	Faults []FaultPeriod
}

// FaultPeriod is the period of an injected fault: until it was healed and every member was ready
// again. The times are relative to the start of the history.
type FaultPeriod struct {
	Fault                   string
	Began, Healed, AllReady time.Duration
}

// shownGaps bounds the number of gaps that the report explains.
const shownGaps = 5

// Do executes the run. Its error reports a failure of the run itself; violations are in the Result.
func (r *Run) Do(ctx context.Context) (*Result, error) {
	began := time.Now()
	members := make([]load.Member, len(r.Members))
	for i, m := range r.Members {
		members[i] = m.Member
	}
	recorder := history.New()
	r.logf(recorder, "times are relative to %s in the members' logs", began.UTC().Format("15:04:05.000"))
	r.Load.Seed = r.Plan.Seed
	clients, err := load.New(ctx, recorder, members, r.Load)
	if err != nil {
		return nil, fmt.Errorf("setting up the clients: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients.Start(ctx)
	injected, problems, err := r.inject(ctx, recorder)
	r.logf(recorder, "faults are over; %d operations so far", recorder.Len())
	if err != nil {
		r.logf(recorder, "run ends early: %v", err)
	}
	drainTimeout := cmp.Or(r.DrainTimeout, time.Minute)
	defer time.AfterFunc(2*drainTimeout+r.Plan.Length/4, cancel).Stop() // in case clients hang
	clients.Finish(ctx, drainTimeout)
	r.logf(recorder, "clients are done; %d operations", recorder.Len())
	report := history.Check(recorder.Ops(), clients.Expect())
	report.Violations = append(report.Violations, problems...)
	if len(report.Violations) > 0 && r.History != "" {
		err = errors.Join(err, r.dump(recorder))
	}
	return &Result{Report: report, Seed: r.Plan.Seed, Took: time.Since(began), Faults: injected}, err
}

// inject executes the plan, one fault after another. Before the next fault each is healed
// and all members are ready again.
func (r *Run) inject(ctx context.Context,
	recorder *history.Recorder,
) (injected []FaultPeriod, problems []history.Violation, err error) {
	for step := range r.Plan.steps(r.Faults) {
		if !pause(ctx, step.quiet) {
			break
		}
		name := step.fault.Name
		period := FaultPeriod{Fault: name, Began: recorder.Now()}
		heal, err := step.fault.Inject(ctx)
		if err != nil {
			return injected, problems, fmt.Errorf("%s: %w", name, err)
		}
		r.logf(recorder, "%s, for %s", name, step.hold.Round(time.Millisecond))
		pause(ctx, step.hold)
		if err := heal(ctx); err != nil {
			return injected, problems, fmt.Errorf("%s: %w", name, err)
		}
		period.Healed = recorder.Now()
		found, err := r.awaitMembers(ctx, name)
		period.AllReady = recorder.Now()
		injected, problems = append(injected, period), append(problems, found...)
		if err != nil {
			return injected, problems, err
		}
		r.logf(recorder, "%s is over; members ready after %s", name,
			(period.AllReady - period.Healed).Round(time.Millisecond))
	}
	pause(ctx, r.Plan.Quiet)
	return injected, problems, ctx.Err()
}

// readyTimeout is the timeout for members to become ready after a fault.
const readyTimeout = 60 * time.Second

// awaitMembers waits until every member is ready. A member that has exited or does not become
// ready is a violation; await restarts it.
func (r *Run) awaitMembers(ctx context.Context, fault string) (problems []history.Violation, err error) {
	for _, m := range r.Members {
		if m.Running() && m.awaitReady(ctx, readyTimeout) {
			continue
		}
		rule, text := "members become ready again automatically", m.Name+" did not after: "+fault
		if !m.Running() {
			rule, text = "no member exits unexpectedly", m.Name+" did after: "+fault
		}
		problems = append(problems, history.Violation{Class: history.Wrong, Rule: rule, Text: text + "\n" + m.Log()})
		m.Kill()
		if err := m.Start(ctx); err != nil {
			return problems, err
		}
	}
	return problems, nil
}

func (r *Run) logf(recorder *history.Recorder, format string, args ...any) {
	if r.Log != nil {
		_, _ = fmt.Fprintf(r.Log, "%8.2fs  %s\n", recorder.Now().Seconds(), fmt.Sprintf(format, args...))
	}
}

func (r *Run) dump(recorder *history.Recorder) error {
	file, err := os.Create(r.History)
	if err != nil {
		return err
	}
	return errors.Join(history.Write(file, recorder.Ops()), file.Close())
}

// pause waits and returns false if the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Print writes the result as text.
func (r *Result) Print(w io.Writer) error {
	kinds := map[string]int{}
	for _, period := range r.Faults {
		kinds[period.Fault]++
	}
	if _, err := fmt.Fprintf(w, "seed                    %d\ntime                    %s\nfaults                  %d\n",
		r.Seed, r.Took.Round(time.Second), len(r.Faults)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if _, err := fmt.Fprintf(w, "  %-30s%d\n", name, kinds[name]); err != nil {
			return err
		}
	}
	if err := r.Report.Print(w); err != nil {
		return err
	}
	for _, gap := range r.Gaps[:min(len(r.Gaps), shownGaps)] {
		if err := r.explain(w, gap); err != nil {
			return err
		}
	}
	return nil
}

// explain writes the faults that overlap a gap, and the most frequent errors in it.
func (r *Result) explain(w io.Writer, gap history.Gap) error {
	lines := []string{"without owner: " + gap.String()}
	for _, s := range r.Faults {
		if s.Began < gap.Began+gap.Length && gap.Began < s.AllReady {
			lines = append(lines,
				fmt.Sprintf("  fault: %s, %.2fs to %.2fs, all ready at %.2fs", s.Fault, s.Began.Seconds(),
					s.Healed.Seconds(), s.AllReady.Seconds()))
		}
	}
	texts := slices.SortedFunc(maps.Keys(gap.Errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(gap.Errors[b], gap.Errors[a]), cmp.Compare(a, b))
	})
	for _, text := range texts[:min(len(texts), shownGaps)] {
		lines = append(lines, fmt.Sprintf("  error, %d times, of %s", gap.Errors[text], text))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
