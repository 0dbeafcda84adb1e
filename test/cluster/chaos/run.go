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
	Faults map[string]int // by name: how often
}

// Do runs. Its error is one of the run itself; broken promises are in the Result.
func (r *Run) Do(ctx context.Context) (*Result, error) {
	began := time.Now()
	members := make([]load.Member, len(r.Members))
	for i, m := range r.Members {
		members[i] = m.Member
	}
	recorder := history.New()
	r.Load.Seed = r.Plan.Seed
	clients, err := load.New(ctx, recorder, members, r.Load)
	if err != nil {
		return nil, fmt.Errorf("setting up the clients: %w", err)
	}
	clients.Start(ctx)
	injected, err := r.inject(ctx, recorder)
	r.logf(recorder, "faults are over; %d operations so far", recorder.Len())
	clients.Finish(ctx, cmp.Or(r.Patience, time.Minute))
	r.logf(recorder, "clients are done; %d operations", recorder.Len())
	report := history.Check(recorder.Ops(), clients.Expect())
	if len(report.Violations) > 0 && r.History != "" {
		err = errors.Join(err, r.dump(recorder))
	}
	return &Result{Report: report, Seed: r.Plan.Seed, Took: time.Since(began), Faults: injected}, err
}

// inject does what the plan says, one fault after another. Each is healed before
// the next one.
func (r *Run) inject(ctx context.Context, recorder *history.Recorder) (map[string]int, error) {
	injected := map[string]int{}
	for step := range r.Plan.steps(r.Faults) {
		if !pause(ctx, step.quiet) {
			break
		}
		r.logf(recorder, "%s", step.fault.Name)
		heal, err := step.fault.Inject(ctx)
		if err == nil {
			injected[step.fault.Name]++
			pause(ctx, step.hold)
			err = heal(ctx)
		}
		if err != nil {
			return injected, fmt.Errorf("%s: %w", step.fault.Name, err)
		}
		r.logf(recorder, "%s is over", step.fault.Name)
	}
	pause(ctx, r.Plan.Quiet)
	return injected, ctx.Err()
}

func (r *Run) logf(recorder *history.Recorder, format string, args ...any) {
	if r.Log != nil {
		_, _ = fmt.Fprintf(r.Log, "%8.2fs  %s\n", recorder.Now().Seconds(), fmt.Sprintf(format, args...)) // lines for people
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
	total := 0
	for _, n := range r.Faults {
		total += n
	}
	if _, err := fmt.Fprintf(w, "seed                    %d\ntime                    %s\nfaults                  %d\n", r.Seed, r.Took.Round(time.Second), total); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		if _, err := fmt.Fprintf(w, "  %-22s%d\n", name, r.Faults[name]); err != nil {
			return err
		}
	}
	return r.Report.Print(w)
}
