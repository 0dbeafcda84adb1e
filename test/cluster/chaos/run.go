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

	"freshet/test/cluster/history"
	"freshet/test/cluster/load"
)

// Fault is something that can be done to a running system. Inject does it, and what
// it returns undoes it.
type Fault struct {
	// Name is what the report calls it.
	Name string
	// Hold is how long it lasts, at most; by chance between half of it and all.
	Hold time.Duration
	// Inject does it. The context is that of the whole run.
	Inject func(ctx context.Context) (heal func(ctx context.Context) error, err error)
}

// Run is clients and faults for a while.
type Run struct {
	Members []*Member
	Load    load.Options
	Faults  []Fault
	// Plan says which fault comes when.
	Plan Plan
	// Log gets a line for each fault.
	Log io.Writer
	// History is a file that gets all operations when a promise was broken; "" none.
	History string
	// Patience bounds how long the system may take to deliver everything in the end.
	Patience time.Duration
}

// Result is what came of a run.
type Result struct {
	*history.Report
	Seed   uint64
	Took   time.Duration
	Faults []Spell
}

// Spell is a fault that was there for a while: until it was healed and every member
// was ready again. Its times are those of the history.
type Spell struct {
	Fault                   string
	Began, Healed, AllReady time.Duration
}

// shownGaps is how many of the longest times without an owner are explained.
const shownGaps = 5

// Do runs. Its error is one of the run itself; broken promises are in the Result.
func (r *Run) Do(ctx context.Context) (*Result, error) {
	began := time.Now()
	members := make([]load.Member, len(r.Members))
	for i, m := range r.Members {
		members[i] = m.Member
	}
	recorder := history.New()
	r.logf(recorder, "times are since %s, of members' logs", began.UTC().Format("15:04:05.000"))
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
		r.logf(recorder, "the run ends early: %v", err)
	}
	patience := cmp.Or(r.Patience, time.Minute)
	defer time.AfterFunc(2*patience+r.Plan.Length/4, cancel).Stop() // whatever the clients wait for
	clients.Finish(ctx, patience)
	r.logf(recorder, "clients are done; %d operations", recorder.Len())
	report := history.Check(recorder.Ops(), clients.Expect())
	report.Violations = append(report.Violations, problems...)
	if len(report.Violations) > 0 && r.History != "" {
		err = errors.Join(err, r.dump(recorder))
	}
	return &Result{Report: report, Seed: r.Plan.Seed, Took: time.Since(began), Faults: injected}, err
}

// inject does what the plan says, one fault after another. Each is healed before
// the next one, and its members are there again.
func (r *Run) inject(ctx context.Context,
	recorder *history.Recorder,
) (injected []Spell, problems []history.Violation, err error) {
	for step := range r.Plan.steps(r.Faults) {
		if !pause(ctx, step.quiet) {
			break
		}
		name := step.fault.Name
		spell := Spell{Fault: name, Began: recorder.Now()}
		heal, err := step.fault.Inject(ctx)
		if err != nil {
			return injected, problems, fmt.Errorf("%s: %w", name, err)
		}
		r.logf(recorder, "%s, for %s", name, step.hold.Round(time.Millisecond))
		pause(ctx, step.hold)
		if err := heal(ctx); err != nil {
			return injected, problems, fmt.Errorf("%s: %w", name, err)
		}
		spell.Healed = recorder.Now()
		found, err := r.await(ctx, name)
		spell.AllReady = recorder.Now()
		injected, problems = append(injected, spell), append(problems, found...)
		if err != nil {
			return injected, problems, err
		}
		r.logf(recorder, "%s is over; members ready after %s", name,
			(spell.AllReady - spell.Healed).Round(time.Millisecond))
	}
	pause(ctx, r.Plan.Quiet)
	return injected, problems, ctx.Err()
}

// readyAgain is how long members may take to be ready when a fault is over.
const readyAgain = 60 * time.Second

// await waits until every member is ready. One that has ended by itself, or does not
// get ready, is a broken promise; it is started again.
func (r *Run) await(ctx context.Context, fault string) (problems []history.Violation, err error) {
	for _, m := range r.Members {
		if m.Running() && m.ready(ctx, readyAgain) {
			continue
		}
		rule, text := "a member gets ready again by itself", m.Name+" did not after: "+fault
		if !m.Running() {
			rule, text = "no member ends by itself", m.Name+" did after: "+fault
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
		// lines for people
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

// pause waits and says whether the run goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	kinds := map[string]int{}
	for _, spell := range r.Faults {
		kinds[spell.Fault]++
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

// explain writes which faults there were while a topic took nothing, and what those
// who called it were told most often.
func (r *Result) explain(w io.Writer, gap history.Gap) error {
	lines := []string{"without owner: " + gap.String()}
	for _, s := range r.Faults {
		if s.Began < gap.Began+gap.Length && gap.Began < s.AllReady {
			lines = append(lines,
				fmt.Sprintf("  fault: %s, %.2fs to %.2fs, all ready at %.2fs", s.Fault, s.Began.Seconds(),
					s.Healed.Seconds(), s.AllReady.Seconds()))
		}
	}
	said := slices.SortedFunc(maps.Keys(gap.Said), func(a, b string) int {
		return cmp.Or(cmp.Compare(gap.Said[b], gap.Said[a]), cmp.Compare(a, b))
	})
	for _, text := range said[:min(len(said), shownGaps)] {
		lines = append(lines, fmt.Sprintf("  told %d times by %s", gap.Said[text], text))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
