package damage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"freshet/test/ensemble/chaos"
	"freshet/test/ensemble/history"
)

// CrashImage suspends all members at one instant, copies their data directories, kills the members,
// and starts new ones from the copies. Everything that was acknowledged before must be there.
func (r *Runner) CrashImage(ctx context.Context, number int) (*Result, error) {
	if err := r.ensure(ctx); err != nil {
		return nil, err
	}
	result := &Result{
		Case: fmt.Sprintf("crash image %d", number), Seed: r.o.Seed, Stop: "SIGSTOP", Outcome: Healed,
		Place: "all members", began: r.recorder.Now(),
	}
	// Some time under load, different for each image.
	wait(ctx, time.Duration(1+number%5)*time.Second)
	if err := r.takeImages(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	err := r.g.Start(ctx)
	if err == nil {
		err = r.g.AwaitHealthy(ctx, healthyTimeout)
	}
	result.Seconds = time.Since(began).Seconds()
	if err != nil {
		result.fail("not healthy: %s", tail(err.Error()))
	} else {
		r.check(ctx, result, r.g.Members, history.Expect{})
	}
	result.ended = r.recorder.Now()
	r.logf("%s: %s, %.1fs, %d messages", result.Case, result.Outcome, result.Seconds, result.Checked)
	if result.Outcome == Failed {
		result.Logs = r.keepLogs(fmt.Sprintf("crash-image-%d", number))
		return result, r.discard()
	}
	return result, ctx.Err()
}

// takeImages replaces the data directories of all members by copies of one instant. The members are
// killed.
func (r *Runner) takeImages(ctx context.Context) error {
	var err error
	for _, m := range r.g.Members {
		err = errors.Join(err, m.Pause())
	}
	for _, m := range r.g.Members {
		if err == nil {
			err = copyDir(ctx, m.DataDir(), imageOf(m))
		}
	}
	for _, m := range r.g.Members {
		m.Kill()
		if err == nil {
			err = errors.Join(os.RemoveAll(m.DataDir()), os.Rename(imageOf(m), m.DataDir()))
		}
	}
	return err
}

func imageOf(m *chaos.Member) string { return m.DataDir() + ".image" }

// copyDir copies a directory. File systems that can share blocks between files do.
func copyDir(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copying %s: %w: %s", from, err, out)
	}
	return nil
}
