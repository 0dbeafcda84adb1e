package damage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"freshet/test/ensemble/chaos"
	"freshet/test/ensemble/history"
	"freshet/test/ensemble/spoil"
)

// Together is several faults at once: a member is paused and misses messages; another one is killed
// and its logs are cut; the third is killed. The first two then run without the third, although
// neither of them has everything that was acknowledged.
type Together struct {
	Name string
	// Classes are cut at the killed member: every file of them.
	Classes []string
	// Operation is the damage.
	Operation spoil.Operation
	// Third is whether the third member comes back.
	Third bool
}

// Combinations returns the cases of several faults.
func Combinations() []Together {
	logs := []string{"log-block", "journal-block", "raft-log"}
	return []Together{
		{"paused, logs cut at the end, killed; all return", logs, spoil.CutEnd, true},
		{"paused, logs cut at half, killed; all return", logs, spoil.CutHalf, true},
		{"paused, logs cut at half, killed; one stays away", logs, spoil.CutHalf, false},
		{"paused, logs deleted, killed; all return", append(logs, "stream-index", "raft-index"), spoil.Delete, true},
	}
}

const (
	// missTime is how long the paused member misses messages. It is longer than its lease, so that
	// the others own its shards.
	missTime = 9 * time.Second
	// aloneTime is how long the two members without the newest messages run alone.
	aloneTime = 20 * time.Second
)

// Together runs the faults and checks that nothing is lost, or that the shards that lost something
// are closed and report it. It ends the ensemble.
func (r *Runner) Together(ctx context.Context, c Together) (*Result, error) {
	if err := r.ensure(ctx); err != nil {
		return nil, err
	}
	members := r.g.Members
	turn := r.turn
	r.turn++
	paused, cut, third := members[turn%3], members[(turn+1)%3], members[(turn+2)%3]
	result := &Result{Case: c.Name, Seed: r.o.Seed, Member: cut.Name, Outcome: Healed, began: r.recorder.Now()}
	if err := paused.Pause(); err != nil {
		return nil, err
	}
	wait(ctx, missTime)
	if missing := r.awaitAccepting(ctx); missing != "" {
		result.fail("topic %s accepts nothing while member %s is paused", missing, paused.Name)
	}
	cut.Kill()
	third.Kill()
	n, err := damageAll(cut, c, r.o.Seed)
	if err != nil {
		return nil, err
	}
	result.Place = fmt.Sprintf("%d files: %s", n, c.Operation)
	began := time.Now()
	w := startWatch(ctx, cut, paused, r.token)
	defer w.stop()
	if err := paused.Resume(); err != nil {
		return nil, err
	}
	returned := []*chaos.Member{paused, cut}
	if healing, err := r.g.Heal(ctx, cut, strings.Join(c.Classes, " ")); err != nil {
		// The two are allowed to wait for the third.
		result.Said = append(result.Said, "without the third: "+tail(err.Error()))
	} else if healing.Refused != "" {
		result.Said = append(result.Said, "refused: "+healing.Refused)
	}
	r.aloneCheck(ctx, result, returned)
	if c.Third {
		returned = members
		r.startRest(ctx, result)
	}
	r.finalCheck(ctx, c, result, returned)
	result.Seconds = time.Since(began).Seconds()
	result.Said = append(result.Said, w.finish()...)
	r.settle(result)
	r.logf("%s: %s, %.1fs", c.Name, result.Outcome, result.Seconds)
	if result.Outcome == Failed {
		result.Logs = r.keepLogs("together-" + fmt.Sprint(turn))
	}
	return result, r.discard()
}

// damageAll damages every file of the classes.
func damageAll(m *chaos.Member, c Together, seed uint64) (n int, err error) {
	random := Case{Operation: c.Operation}.random(seed)
	for _, class := range spoil.Classes() {
		for _, name := range c.Classes {
			if class.Name != name {
				continue
			}
			done, err := spoil.DamageAll(m.DataDir(), class, c.Operation, random)
			if err != nil {
				return n, err
			}
			n += done
		}
	}
	return n, nil
}

// aloneCheck looks for partitions that end before acknowledged messages, while the third member is
// away: they would give ids twice.
func (r *Runner) aloneCheck(ctx context.Context, result *Result, members []*chaos.Member) {
	ctx, cancel := context.WithTimeout(ctx, aloneTime)
	defer cancel()
	for {
		short, err := r.kept.Shortened(ctx, clients(members))
		if err == nil && len(short) > 0 {
			result.fail("served although messages are missing: %s", strings.Join(short, "; "))
			return
		}
		if !wait(ctx, time.Second) {
			return
		}
	}
}

// startRest starts all members that do not run, at the same time: a damaged one waits for the others.
func (r *Runner) startRest(ctx context.Context, result *Result) {
	problems := make([]error, len(r.g.Members))
	var wg sync.WaitGroup
	for i, m := range r.g.Members {
		wg.Go(func() { _, problems[i] = r.g.Heal(ctx, m, "") })
	}
	wg.Wait()
	for i, err := range problems {
		if err != nil {
			result.Said = append(result.Said, "member "+r.g.Members[i].Name+": "+tail(err.Error()))
		}
	}
}

// finalCheck reads everything. What is missing may be missing only while its shard is closed with
// LogLost, and while too few members run.
func (r *Runner) finalCheck(ctx context.Context, c Together, result *Result, members []*chaos.Member) {
	if c.Third {
		if err := r.g.AwaitHealthy(ctx, healthyTimeout); err != nil {
			result.Said = append(result.Said, "not healthy: "+tail(err.Error()))
		}
	}
	r.verify(ctx, result, members, history.Expect{}, verifyTimeout)
	if short, err := r.kept.Shortened(ctx, clients(members)); err == nil && len(short) > 0 {
		result.fail("served although messages are missing: %s", strings.Join(short, "; "))
	}
}

// settle decides whether missing messages are accounted for. Messages that cannot be read while the
// ensemble says LogLost are not lost in silence. Contents that differ, messages that are stored twice
// and partitions that are served without their end are failures in any case.
func (r *Runner) settle(result *Result) {
	said := strings.Join(result.Said, "\n")
	closed := strings.Contains(said, "LogLost") || strings.Contains(said, "accept-loss")
	result.Reported = reported(result.Said...)
	if result.Outcome != Failed || !closed || result.Foreign+result.Wrong+result.Duplicated > 0 {
		return
	}
	for _, problem := range result.Problems {
		if strings.HasPrefix(problem, "served although") {
			return
		}
	}
	result.Outcome, result.Lost = LogLost, 0
}
