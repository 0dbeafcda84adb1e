package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
	"freshet/test/tally"
)

// owners is a state machine that assigns each name to the first claimant.
type owners map[string]string

func (o owners) Clone() owners { return maps.Clone(o) }

func (o owners) Apply(_ uint64, record []byte) error {
	name, owner, _ := strings.Cut(string(record), " ")
	if o[name] != "" {
		return fmt.Errorf("%s belongs to %s already", name, o[name])
	}
	o[name] = owner
	return nil
}

func (o owners) Snapshot(w io.Writer) error {
	var b bytes.Buffer
	for name, owner := range o {
		fmt.Fprintln(&b, name, owner)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (o owners) Restore(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for i, line := range split(text) {
		if err := o.Apply(uint64(i), []byte(line)); err != nil {
			return err
		}
	}
	return nil
}

func openMachine(t testing.TB, j engine.Journal) *statemachine.Machine[owners] {
	t.Helper()
	m, err := statemachine.Open(context.Background(), j, statemachine.Options[owners]{
		Name: "owners", Empty: owners{},
		SnapshotBytes: 2 << 10, AppendTimeout: callTimeout, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("opening a state machine: got error %v, want none", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var errTaken = errors.New("taken")

// claims has members compete for names.
type claims struct {
	t        testing.TB
	machines []*statemachine.Machine[owners]

	mu     sync.Mutex
	won    map[string]string // owner by name, of acknowledged claims; protected by mu
	wrong  atomic.Int64
	failed atomic.Int64
	done   atomic.Int64
}

func (c *claims) wrongf(format string, args ...any) {
	c.wrong.Add(1)
	c.t.Errorf(format, args...)
}

// claim makes one member claim a name, and then reads the name through every member.
func (c *claims) claim(ctx context.Context, member int, name, owner string) {
	m := c.machines[member]
	state, err := m.Update(ctx, func(o owners) ([][]byte, error) {
		if o[name] != "" {
			return nil, errTaken
		}
		return [][]byte{[]byte(name + " " + owner)}, nil
	})
	switch {
	case err == nil:
		if state[name] != owner || m.View()[name] != owner {
			c.wrongf("member %d, after its write: got owner %q and %q of %s, want %s", member, state[name],
				m.View()[name], name, owner)
		}
		c.mu.Lock()
		other := c.won[name]
		c.won[name] = owner
		c.mu.Unlock()
		if other != "" {
			c.wrongf("%s: got owners %s and %s, want one", name, other, owner)
		}
		c.done.Add(1)
	case errors.Is(err, errTaken):
		if m.View()[name] == "" {
			c.wrongf("member %d reports that %s is taken: got no owner, want one", member, name)
		}
	default:
		c.tolerate(ctx, err)
		return
	}
	c.checkOwner(ctx, name, owner, err == nil)
}

// checkOwner reads a claimed name from each member's state machine after a read barrier.
func (c *claims) checkOwner(ctx context.Context, name, owner string, ours bool) {
	for i, m := range c.machines {
		fresh, err := m.Fresh(ctx)
		if err != nil {
			c.tolerate(ctx, err)
			continue
		}
		if got := fresh[name]; got == "" || ours && got != owner {
			c.wrongf("member %d after its read barrier: got owner %q of %s, want %s", i, got, name, owner)
		}
	}
}

func (c *claims) tolerate(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	c.failed.Add(1)
	if errs.KindOf(err) != errs.Unavailable && !errors.Is(err, context.DeadlineExceeded) {
		c.wrongf("got error %v, want none or a retryable one", err)
	}
}

func (c *claims) run(seed uint64, each int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for w := range each * len(c.machines) {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				call, cancel := context.WithTimeout(ctx, 2*callTimeout)
				c.claim(call, w%len(c.machines), fmt.Sprintf("name-%d", n*2+rng.IntN(4)), fmt.Sprintf("worker-%d", w))
				cancel()
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// agree waits until all members have the same state, and returns the number of
// acknowledged claims that are missing in it.
func (c *claims) agree() (lost int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var states []owners
	for i, m := range c.machines {
		for {
			state, err := m.Fresh(ctx)
			if err == nil {
				states = append(states, state)
				break
			}
			if ctx.Err() != nil {
				c.t.Fatalf("member %d after the faults: got error %v, want its state", i, err)
			}
		}
		if !maps.Equal(states[i], states[0]) {
			c.wrongf("member %d: got %d names, want the %d of member 0", i, len(states[i]), len(states[0]))
		}
	}
	for name, owner := range c.won {
		if states[0][name] != owner {
			c.t.Errorf("%s: got owner %q, want %s, as acknowledged", name, states[0][name], owner)
			lost++
		}
	}
	return lost
}

func TestFaultReplicasUnderLeaderChanges(t *testing.T) {
	t.Parallel()
	natsCluster := natstest.New(t, 3)
	c := &claims{t: t, won: map[string]string{}}
	for _, j := range members(t, natsCluster, 0, 1, 2) {
		c.machines = append(c.machines, openMachine(t, j))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1000))
	stop := c.run(seed, 2)
	conn := natsCluster.Connect(0)
	injected, worst := 0, time.Duration(0)
	for end := time.Now().Add(duration(4 * time.Second)); time.Now().Before(end); injected++ {
		before, done := time.Now(), c.done.Load()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if rng.IntN(3) > 0 {
			_ = natsCluster.StepDown(ctx, conn, stream)
		} else {
			i := rng.IntN(3)
			natsCluster.Stop(i)
			natsCluster.Start(i)
			natsCluster.Ready() // one fault at a time
		}
		for c.done.Load() < done+5 && ctx.Err() == nil {
			sleep(5 * time.Millisecond)
		}
		cancel()
		worst = max(worst, time.Since(before))
	}
	stop()
	lost := c.agree()
	t.Logf("%d names claimed, %d calls failed", c.done.Load(), c.failed.Load())
	tally.Fault{
		Name: "journal: three state machines while leaders change", Injected: injected,
		Checked: int(c.done.Load()), Lost: lost, Wrong: int(c.wrong.Load()), Recovery: worst,
	}.Record(t)
}
