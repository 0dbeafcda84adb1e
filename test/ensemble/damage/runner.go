package damage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet/test/ensemble/chaos"
	"freshet/test/ensemble/history"
	"freshet/test/ensemble/load"
	"freshet/test/ensemble/spoil"
)

// Options configures a Runner.
type Options struct {
	// Binary is the freshet binary, Dir the folder for the files of all ensembles.
	Binary, Dir string
	// Logs is the folder for the members' logs of failed cases.
	Logs string
	Seed uint64
	// Log receives a line for each step.
	Log io.Writer
}

// Runner runs cases. It is not safe for concurrent use.
type Runner struct {
	o       Options
	started int // ensembles so far
	turn    int // cases so far

	g        *chaos.Ensemble
	kept     *load.Kept
	recorder *history.Recorder
	token    string
	dir      string
	stop     context.CancelFunc // stops the clients
	previous *Result            // the last healed case, until it is proved
}

// Limits are generous: the machine may be busy.
const (
	readyTimeout   = 2 * time.Minute
	healthyTimeout = 3 * time.Minute
	verifyTimeout  = 90 * time.Second
	acceptTimeout  = time.Minute
	stopTimeout    = time.Minute
	drainTimeout   = 2 * time.Minute
	// observeTime is how long a running member keeps its damaged file before it is stopped.
	observeTime = 4 * time.Second
	pauseTime   = 400 * time.Millisecond // between two calls of a client
)

// New returns a Runner. It starts nothing.
func New(o Options) *Runner { return &Runner{o: o} }

func (r *Runner) logf(format string, args ...any) {
	if r.o.Log != nil {
		_, _ = fmt.Fprintf(r.o.Log, "%s %s\n", time.Now().UTC().Format("15:04:05"), fmt.Sprintf(format, args...))
	}
}

// ensure starts an ensemble and its clients, if none runs. All members are restarted in order once, so
// that their stores have tables.
func (r *Runner) ensure(ctx context.Context) error {
	if r.g != nil {
		return nil
	}
	r.started++
	began := time.Now()
	dir := filepath.Join(r.o.Dir, fmt.Sprintf("ensemble-%d", r.started))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	options := chaos.EnsembleOptions{Binary: r.o.Binary, Dir: dir, ReadyTimeout: readyTimeout}
	g, err := chaos.NewEnsemble(ctx, options, r.o.Seed)
	if err != nil {
		return err
	}
	r.g, r.dir = g, dir
	err = r.startClients(ctx)
	if err != nil {
		return errors.Join(err, r.discard())
	}
	r.logf("ensemble %d is ready after %s", r.started, time.Since(began).Round(time.Second))
	return nil
}

func (r *Runner) startClients(ctx context.Context) error {
	if err := r.g.Start(ctx); err != nil {
		return err
	}
	r.token, r.recorder = r.g.Members[0].Token(), history.New()
	options := load.Options{Token: r.token, Seed: r.o.Seed, Pause: pauseTime}
	kept, err := load.NewKept(ctx, r.recorder, r.g.Clients(), options)
	if err != nil {
		return err
	}
	for _, m := range r.g.Members {
		if err := m.Stop(stopTimeout); err != nil {
			return err
		}
	}
	if err := r.g.Start(ctx); err != nil {
		return err
	}
	clients, stop := context.WithCancel(ctx)
	r.kept, r.stop = kept, stop
	kept.Start(clients)
	if err := r.g.AwaitHealthy(ctx, healthyTimeout); err != nil {
		return err
	}
	if missing := r.awaitAccepting(ctx); missing != "" {
		return fmt.Errorf("topic %s of a new ensemble accepts no messages", missing)
	}
	return nil
}

// discard ends the ensemble and removes its files.
func (r *Runner) discard() error {
	if r.g == nil {
		return nil
	}
	err := r.g.Close()
	if r.kept != nil {
		r.stop()
		r.kept.Stop(context.Background(), 0)
	}
	err = errors.Join(err, os.RemoveAll(r.dir))
	r.g, r.kept, r.previous = nil, nil, nil
	return err
}

// Case runs one case. Its error reports a failure of the harness; what the ensemble did wrong is in
// the result.
func (r *Runner) Case(ctx context.Context, c Case) (*Result, error) {
	for {
		if err := r.ensure(ctx); err != nil {
			return nil, err
		}
		result := &Result{Case: c.Name(), Seed: r.o.Seed}
		repeat, err := r.try(ctx, c, result)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name(), err)
		}
		if repeat { // the previous case had broken the ensemble
			if err := r.discard(); err != nil {
				return nil, err
			}
			continue
		}
		r.logf("%s: %s, %.1fs, outage %.1fs, %s", c.Name(), result.Outcome, result.Seconds, result.Outage, result.File)
		if result.Outcome == Failed {
			r.logf("%s: %s", c.Name(), strings.Join(result.Problems, "; "))
			result.Logs = r.keepLogs(c.Name())
			return result, r.discard()
		}
		if result.Outcome != Absent {
			r.previous = result
		}
		return result, ctx.Err()
	}
}

func (r *Runner) try(ctx context.Context, c Case, result *Result) (repeat bool, err error) {
	victim := r.victim()
	random := c.random(r.o.Seed)
	graceful := random.IntN(2) == 0 || c.Class.Name == "closed"
	result.Member, result.Stop = victim.Name, "SIGKILL"
	if graceful {
		result.Stop = "SIGTERM"
	}
	result.began = r.recorder.Now()
	w := startWatch(ctx, victim, r.others(victim)[0], r.token)
	defer w.stop()
	if c.When == Running {
		done, err := spoil.Damage(victim.DataDir(), c.Class, c.Operation, random, r.owned(victim))
		if absent(result, err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		result.File, result.Place = done.File, done.Place
		wait(ctx, observeTime)
	}
	r.turn++
	r.stopMember(victim, graceful, result)
	if !r.proved(ctx, victim) {
		r.turn--
		return true, ctx.Err()
	}
	if c.When == Stopped {
		done, err := spoil.Damage(victim.DataDir(), c.Class, c.Operation, random, r.owned(victim))
		if absent(result, err) {
			return false, victim.Start(ctx)
		}
		if err != nil {
			return false, err
		}
		result.File, result.Place = done.File, done.Place
	}
	r.heal(ctx, victim, result)
	result.Said = append(result.Said, w.finish()...)
	result.Reported = result.Reported || reported(result.Said...)
	if result.Outcome != Failed {
		r.check(ctx, result, r.g.Members, history.Expect{})
	}
	result.ended = r.recorder.Now()
	return false, ctx.Err()
}

// victim returns the member of the next case. Members rotate backwards: a member prefers its own
// shards and then those of the member before it in the list, so the member of the previous case owns
// most shards while the next one is stopped.
func (r *Runner) victim() *chaos.Member {
	n := len(r.g.Members)
	return r.g.Members[n-1-r.turn%n]
}

// shardNumber finds the number of a shard in the path of one of its files.
var shardNumber = regexp.MustCompile(`/shard-(\d+)/`)

// owned returns a function that reports whether a file belongs to a shard that the member owns when it
// has healed, or when the next member is stopped. Damage of other shards' copies would not be read.
func (r *Runner) owned(victim *chaos.Member) func(string) bool {
	n := len(r.g.Members)
	self := slices.Index(r.g.Members, victim)
	return func(file string) bool {
		found := shardNumber.FindStringSubmatch(file)
		if found == nil {
			return false
		}
		number, err := strconv.Atoi(found[1])
		return err == nil && number%n != (self+1)%n
	}
}

// stopMember stops a member. A member with a damaged file may end with an error, or have ended.
func (r *Runner) stopMember(m *chaos.Member, graceful bool, result *Result) {
	if !graceful {
		m.Kill()
		return
	}
	if err := m.Stop(stopTimeout); err != nil {
		result.Said = append(result.Said, "SIGTERM: "+firstLine(err.Error()))
	}
}

// proved checks, while a member is stopped, that the others have everything and accept everything. It
// proves that the member of the previous case has healed.
func (r *Runner) proved(ctx context.Context, stopped *chaos.Member) bool {
	if r.previous == nil {
		return true
	}
	previous := r.previous
	r.previous = nil
	r.check(ctx, previous, r.others(stopped), history.Expect{})
	if previous.Outcome != Failed {
		return true
	}
	previous.Problems = slices.Insert(previous.Problems, 0, "looked healed, but with member "+stopped.Name+" stopped:")
	previous.Logs = r.keepLogs(previous.Case)
	r.logf("%s: FAILED: %s", previous.Case, strings.Join(previous.Problems, "; "))
	return false
}

// heal starts the damaged member and waits until the ensemble is healthy.
func (r *Runner) heal(ctx context.Context, victim *chaos.Member, result *Result) {
	began := time.Now()
	healing, err := r.g.Heal(ctx, victim, result.File)
	result.Outcome, result.Command = Healed, healing.Command
	if healing.Refused != "" {
		result.Outcome, result.Reported = Obeyed, true
		result.Said = append(result.Said, "refused: "+healing.Refused)
		if !healing.NamesFile {
			result.fail("member refused to start without naming the file %s: %s", result.File, healing.Refused)
		}
	}
	if err == nil {
		err = r.g.AwaitHealthy(ctx, healthyTimeout)
	}
	result.Seconds = time.Since(began).Seconds()
	if err != nil {
		result.fail("not healed: %s", tail(err.Error()))
	}
	if err == nil {
		r.checkTokens(ctx, result)
		if err := victim.AwaitOwned(ctx); err != nil {
			result.Said = append(result.Said, "shards are not handed back: "+err.Error())
		}
	}
}

// checkTokens checks that the administrator's token of every member works at every member.
func (r *Runner) checkTokens(ctx context.Context, result *Result) {
	for _, from := range r.g.Members {
		for _, at := range r.g.Members {
			if status, err := authenticate(ctx, at, from.Token()); err != nil || status != http.StatusOK {
				result.fail("admin.token of member %s at member %s: got status %d %v, want 200", from.Name, at.Name,
					status, err)
			}
		}
	}
}

// authenticate returns the status with which a member answers a token. It repeats the call while the member has no
// lease: a member of a busy machine answers 503 until it has one, whatever the token is.
func authenticate(ctx context.Context, at *chaos.Member, token string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	for {
		status, _, err = get(ctx, at.URL+"/system/v1alpha1/members", token)
		if (err == nil && status != http.StatusServiceUnavailable) || !wait(ctx, pauseTime) {
			return status, err
		}
	}
}

// check waits until the members accept messages for every topic, and reads everything that was
// acknowledged.
func (r *Runner) check(ctx context.Context, result *Result, members []*chaos.Member, expect history.Expect) {
	timeout := verifyTimeout
	if missing := r.awaitAccepting(ctx); missing != "" {
		result.fail("topic %s accepts no messages", missing)
		timeout /= 4 // it was waited for
	}
	r.verify(ctx, result, members, expect, timeout)
}

func (r *Runner) verify(ctx context.Context, result *Result, members []*chaos.Member, expect history.Expect,
	timeout time.Duration,
) {
	v, err := r.kept.Verify(ctx, clients(members), timeout, expect)
	if err != nil {
		result.fail("%v", err)
		return
	}
	result.Checked = v.Acknowledged
	result.Lost, result.Foreign = v.Count(history.Lost), v.Count(history.Foreign)
	result.Duplicated, result.Wrong = v.Count(history.Duplicated), v.Count(history.Wrong)
	for _, violation := range v.Violations[:min(len(v.Violations), maxShown)] {
		result.fail("%s", violation)
	}
	for _, text := range v.Unavailable[:min(len(v.Unavailable), maxShown)] {
		result.fail("unavailable: %s", text)
	}
	result.Outage = max(result.Outage, result.longest(v.Gaps))
}

// maxShown bounds the problems of one check in a result.
const maxShown = 5

// longest returns the longest of the gaps of a case, in seconds.
func (r *Result) longest(gaps []history.Gap) float64 {
	for _, gap := range gaps { // the longest first
		if gap.Began+gap.Length > r.began && (r.ended == 0 || gap.Began < r.ended) {
			return gap.Length.Seconds()
		}
	}
	return 0
}

// awaitAccepting waits until every topic has accepted a message from now on.
func (r *Runner) awaitAccepting(ctx context.Context) (missing string) {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	for since := r.recorder.Now(); ; {
		if missing = r.kept.AcceptedSince(since); missing == "" || !wait(ctx, pauseTime) {
			return missing
		}
	}
}

func (r *Runner) others(m *chaos.Member) []*chaos.Member {
	return slices.DeleteFunc(slices.Clone(r.g.Members), func(o *chaos.Member) bool { return o == m })
}

func clients(members []*chaos.Member) []load.Member {
	list := make([]load.Member, len(members))
	for i, m := range members {
		list[i] = m.Member
	}
	return list
}

// Finish proves the last case, waits until the subscriptions are drained, and ends the ensemble.
func (r *Runner) Finish(ctx context.Context) (*Result, error) {
	if r.g == nil {
		return nil, nil
	}
	result := &Result{Case: "end", Seed: r.o.Seed, Outcome: Intact}
	last := r.victim()
	r.stopMember(last, true, result)
	r.proved(ctx, last)
	if err := last.Start(ctx); err != nil {
		return nil, err
	}
	if err := r.g.AwaitHealthy(ctx, healthyTimeout); err != nil {
		result.fail("not healthy: %s", tail(err.Error()))
	}
	r.verify(ctx, result, r.g.Members, r.kept.Stop(ctx, drainTimeout), verifyTimeout)
	if result.Outcome == Failed {
		result.Logs = r.keepLogs("end")
	}
	return result, r.discard()
}

// keepLogs copies the members' logs of a failed case and returns their folder.
func (r *Runner) keepLogs(name string) string {
	dir := filepath.Join(r.o.Logs, strings.ReplaceAll(name, "/", "-"))
	if r.o.Logs == "" || os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	for _, m := range r.g.Members {
		if err := copyEnd(filepath.Join(dir, m.Name+".log"), m.LogFile()); err != nil {
			r.logf("keeping the log of member %s: %v", m.Name, err)
		}
	}
	return dir
}

// maxLog bounds a kept log.
const maxLog = 4 << 20

// copyEnd copies the end of a file.
func copyEnd(to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, io.NewSectionReader(source, max(info.Size()-maxLog, 0), maxLog))
	return errors.Join(err, target.Close())
}

func absent(result *Result, err error) bool {
	if errors.Is(err, spoil.ErrAbsent) {
		result.Outcome = Absent
	}
	return errors.Is(err, spoil.ErrAbsent)
}

// wait waits and returns false if the context ends first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// tail shortens an error that contains the end of a log.
func tail(text string) string {
	const most = 1500
	if len(text) > most {
		text = text[:most/3] + " … " + text[len(text)-most*2/3:]
	}
	return text
}
