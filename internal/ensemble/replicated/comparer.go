package replicated

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
)

// comparer is the state of the goroutine that compares this member's copy with the others, and leads the
// comparison while this member is the owner. A new owner continues with the step in etcd.
type comparer struct {
	s        *Shard
	summed   string          // step that this member has worked on
	took     bool            // it has taken part in the present comparison
	seen     string          // step that it has seen as the owner
	seenAt   time.Time       // when it saw that step first
	dueSince time.Time       // since when a comparison is due or runs
	futile   string          // step in which no two copies could be compared
	paused   time.Time       // until then no step begins after it
	silent   map[string]bool // members that did not respond to the last step, such as those of an earlier version
	recorded step            // in the register of verified files
	lines    lograte.Limiter // reports a difference once
}

// compareLoop takes part in comparisons until the shard is closed.
func (s *Shard) compareLoop() {
	c := &comparer{s: s}
	defer s.o.Turns.leave(s)
	lines := lograte.New(retryWarnings)
	for s.ctx.Err() == nil {
		s.mu.Lock()
		v := comparison{
			step: s.view.step, mine: s.view.sums[s.o.Member], copies: s.holderNamesLocked(), suspect: s.suspect,
			follows: s.stream != nil && s.verified,
			leads:   s.view.known && s.writer != nil && s.verified && s.view.owner.Instance == s.instance,
		}
		changed := s.changed
		s.mu.Unlock()
		wait, err := c.act(&v)
		if err != nil {
			wait = max(wait, retryInterval)
		}
		if err != nil && s.ctx.Err() == nil && !errors.Is(err, errReplaced) && !errors.Is(err, errNoClaim) {
			s.log.LogAttrs(s.ctx, lines.Level("compare"), "comparing the copies of the shard failed; retrying",
				slog.Any("error", err))
		}
		if wait > 0 {
			s.await(s.ctx, changed, wait)
		}
	}
}

// comparison is what a member knows about the comparison of a shard.
type comparison struct {
	step    step
	mine    contentSum
	copies  []string // members that should have one
	suspect suspectCopy
	follows bool // this member's copy is verified and follows the log
	leads   bool
}

// act does what is due, and returns how long to wait for a change.
func (c *comparer) act(v *comparison) (time.Duration, error) {
	s := c.s
	if found := v.suspect; found.err != nil {
		err := s.withStore(found.store, func() error {
			found.store.Condemn(found.err)
			return nil
		})
		s.mu.Lock()
		s.suspect = suspectCopy{}
		s.mu.Unlock()
		return 0, err
	}
	if slices.Contains(v.copies, s.o.Member) {
		if err := c.record(&v.step); err != nil {
			return retryInterval, err
		}
	}
	known := v.step.Version == contentVersion && v.mine.ID != v.step.ID && c.summed != v.step.ID
	if v.step.Running && known && v.follows {
		took, err := s.sumStep(v.step)
		if err == nil {
			c.summed, c.took = v.step.ID, c.took || took
		}
		return 0, err
	}
	if !v.leads || len(v.copies) < 2 {
		s.o.Turns.leave(s)
		return comparePoll, nil
	}
	return c.lead(v)
}

// record records the result of a comparison that this member has taken part in.
func (c *comparer) record(of *step) error {
	if of.Found == c.recorded.Found && of.Problem == c.recorded.Problem && of.Ended.Equal(c.recorded.Ended) {
		return nil
	}
	var at time.Time
	ended := !of.Running && !of.Ended.Equal(c.recorded.Ended)
	if ended && c.took && !slices.Contains(of.Missing, c.s.o.Member) {
		if of.Problem == "" {
			if err := c.s.setCompared(); err != nil {
				return fmt.Errorf("recording that the copy was compared: %w", err)
			}
		}
		at = of.Ended
	}
	c.took = c.took && of.Running
	c.recorded = *of
	c.s.o.Integrity.Compared(c.s.part(), at, cmp.Or(of.Found, of.Problem))
	return nil
}

// lead begins a comparison that is due, and each of its steps when the last one has ended.
func (c *comparer) lead(v *comparison) (time.Duration, error) {
	s, of := c.s, v.step
	if of.ID == "" { // the first comparison is due an interval from now
		return 0, s.writeStep(step{Since: time.Now()})
	}
	if !of.Running {
		if due := s.o.VerifyInterval - min(time.Since(of.Ended), time.Since(of.Since)); due > 0 {
			s.o.Turns.leave(s)
			return min(due, verifyPoll), nil
		}
		of = step{Running: true, Problem: of.Problem, Ended: of.Ended}
		c.seen, c.silent = "", nil
		c.lines.Forget("differ")
	} else {
		if c.seen != of.ID {
			c.seen, c.seenAt = of.ID, time.Now()
		}
		next, done := c.next(&of, v.copies)
		if !done {
			return min(comparePoll, max(retryInterval, stepTimeout-time.Since(c.seenAt))), nil
		}
		of = next
	}
	if c.dueSince.IsZero() {
		c.dueSince = time.Now()
	}
	if !of.Running {
		c.dueSince = time.Time{}
		s.o.Turns.leave(s)
		return 0, s.writeStep(of)
	}
	// A copy that is absent for long does not keep the others from being compared.
	ready := time.Since(c.dueSince) > s.o.VerifyInterval ||
		!slices.ContainsFunc(v.copies, func(name string) bool { return !s.inSync(name) })
	if !ready || time.Now().Before(c.paused) {
		s.o.Turns.leave(s)
		return min(comparePoll, s.o.VerifyInterval), nil
	}
	if !s.o.Turns.take(s) {
		return comparePoll, nil
	}
	return 0, c.begin(of)
}

// inSync reports whether a member is live and has a verified copy that follows the log.
func (s *Shard) inSync(member string) bool {
	if !slices.Contains(s.o.Members.Live(), member) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.copies[member].InSync
}

// begin begins a step: it chooses the message of the log and writes the step.
func (c *comparer) begin(of step) error {
	s := c.s
	before, err := s.storePosition()
	if err == nil {
		err = retry.Sleep(s.ctx, time.Second)
	}
	if err != nil {
		return err
	}
	now, err := s.storePosition()
	if err != nil {
		return err
	}
	of.Seq = now.seq
	if perSecond := now.seq - before.seq; perSecond > 0 {
		of.Seq += perSecond*aheadSeconds<<min(of.Times, 2) + 1
	}
	of.Times++
	of.Bytes = max(1, s.o.VerifyBytes/backgroundShare) * int64(stepTime/time.Second)
	return s.writeStep(of)
}

// next returns the step after one, and whether that one has ended. A step is repeated when contents, or
// positions, differ.
func (c *comparer) next(of *step, copies []string) (next step, done bool) {
	s := c.s
	s.mu.Lock()
	sums := make(map[string]contentSum, len(copies))
	var absent []string
	for _, name := range copies {
		if sum, ok := s.view.sums[name]; ok && sum.ID == of.ID {
			sums[name] = sum
		} else {
			absent = append(absent, name)
		}
	}
	s.mu.Unlock()
	if time.Since(c.seenAt) < stepTimeout && slices.ContainsFunc(absent, func(name string) bool {
		return !c.silent[name] && s.inSync(name)
	}) {
		return *of, false
	}
	c.silent = make(map[string]bool)
	for _, name := range absent {
		c.silent[name] = true
	}
	v := judge(of, sums, copies)
	if next = *of; (len(v.compared) < max(1, len(sums)) || len(v.odd)+len(v.undecided) > 0) &&
		of.Times < maxSteps && of.Version == contentVersion {
		return next, true
	}
	next.Times = 0
	if len(v.undecided) > 0 {
		next.Found = fmt.Sprintf("copies of %s differ in the keys from %x on, and no majority of the copies decides "+
			"which one is right; they are all kept: start the members that are stopped, and see the documentation "+
			"of damaged files", strings.Join(v.undecided, " and "), of.From)
		if c.lines.Changed("differ", next.Found) {
			s.log.Error("copies of the shard differ", slog.String("problem", next.Found))
		}
	}
	next.Missing = nil
	for _, name := range copies {
		if slices.Contains(of.Missing, name) || !slices.Contains(v.compared, name) {
			next.Missing = append(next.Missing, name)
		}
	}
	var reference contentSum
	for _, name := range slices.Concat(v.good, []string{s.o.Member}, copies) {
		if reference = sums[name]; reference.Sum != "" {
			break
		}
	}
	switch {
	case of.Version != contentVersion: // a comparison of another version begins again
		next.From = nil
	case len(v.compared) < 2: // the step begins again, later
		next.Missing = of.Missing
		if c.futile != of.ID {
			c.futile, c.paused = of.ID, time.Now().Add(min(comparePause, s.o.VerifyInterval))
		}
	case reference.End:
		return step{Problem: next.Found, Missing: next.Missing, Ended: time.Now()}, true
	default:
		next.From = append(bytes.Clone(reference.Last), 0)
	}
	return next, true
}
