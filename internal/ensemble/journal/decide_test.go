package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/ensemble/journal"
	"freshet/internal/storage/engine"
)

func (g *team) deleteStream() {
	g.t.Helper()
	js, err := natsjs.New(g.nats.Connect(0))
	if err == nil {
		err = js.DeleteStream(context.Background(), g.stream())
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// awaitLost waits until the journal cannot be opened on a member, because records are missing.
func (g *team) awaitLost(name, want string) {
	g.t.Helper()
	g.until(func() string {
		err := g.tryOpen(name)
		if !errors.Is(err, engine.ErrJournalLost) || !strings.Contains(err.Error(), want) {
			return fmt.Sprintf("opening the journal on %s: got error %v, want ErrJournalLost with %q", name, err, want)
		}
		return ""
	})
}

func (g *team) options(name string) journal.Options {
	return journal.Options{
		Prefix: "x", Etcd: g.client, Keys: "/t/x", Dir: g.dir + "/" + name + "/copies", Member: name, All: g.names,
		Peers: g,
	}
}

// behind makes a journal of 20 records of which only c has all in its copy, and stops c: a and b have 10.
func (g *team) behind() (all string) {
	g.start("a", "b", "c")
	g.open("a", "b", "c")
	g.append(0, 10, "a", "b", "c")
	g.awaitCopies(10, "a", "b", "c")
	g.stop("a", "b")
	g.append(10, 10, "c")
	g.awaitCopies(20, "c")
	all, _ = g.content("c")
	g.stop("c")
	g.deleteStream()
	g.start("a", "b")
	return all
}

// TestALossThatCannotBeDecided stops the only member that has all records. The journal stays closed and
// names the member. It continues when the member is back, or when an operator accepts the loss.
func TestALossThatCannotBeDecided(t *testing.T) {
	t.Parallel()
	t.Run("the member returns", func(t *testing.T) {
		t.Parallel()
		g := newTeam(t)
		g.name = "returns"
		all := g.behind()
		g.awaitLost("a", `start member "c"`)
		options := g.options("a")
		if lost, err := options.Lost(t.Context()); err != nil || lost["returns"] == "" {
			t.Errorf("lost journals: got %v, error %v; want one", lost, err)
		}
		g.start("c")
		g.open("a", "b", "c")
		g.check(all, 20)
		g.append(20, 6, "a", "b", "c")
		if lost, err := options.Lost(t.Context()); err != nil || len(lost) != 0 {
			t.Errorf("lost journals: got %v, error %v; want none", lost, err)
		}
	})
	t.Run("an operator accepts the loss", func(t *testing.T) {
		t.Parallel()
		g := newTeam(t)
		g.name = "accepts"
		g.behind()
		g.awaitLost("a", `start member "c"`)
		reports, err := journal.Inspect(t.Context(), g.options("a"), g.member("a").js, "")
		if err != nil {
			t.Fatal(err)
		}
		var r *journal.Report
		for i := range reports {
			if reports[i].Name == g.name {
				r = &reports[i]
			}
		}
		if r == nil || r.Lost == "" || r.Needed != 20 || r.From == "" || r.From == "c" || !r.Members[2].Missing ||
			r.Members[2].Position != 20 {
			t.Fatalf("got report %+v, want a lost journal of which a or b has 10 of 20 records", r)
		}
		a := g.member("a").js
		if _, err := journal.AcceptLoss(t.Context(), g.options("a"), a, g.name, r.From, "other"); err == nil {
			t.Error("accepting a loss with another token: got no error, want one")
		}
		_, err = journal.AcceptLoss(t.Context(), g.options("a"), a, g.name, r.From, r.Token)
		if err != nil {
			t.Fatal(err)
		}
		g.open("a", "b")
		last := g.append(10, 4, "a", "b")
		want, _ := g.content("a")
		g.start("c") // its copy has records that were given up
		g.open("c")
		g.check(want, last)
		g.awaitCopies(last, "a", "b", "c")
		if part := g.member("c").register.Part("journal x/accepts"); part.Damages != 1 {
			t.Errorf("the copy of c: got %+v, want one damage", part)
		}
	})
}

// TestADamagedCopyIsMadeAnew damages the copies of a stopped member, each in another way. A copy that is cut
// off after its reported position is not damaged: a crash does that.
func TestADamagedCopyIsMadeAnew(t *testing.T) {
	t.Parallel()
	g := newTeam(t)
	type copyCase struct {
		name string
		edit func(text []byte) []byte // nil deletes the file
		harm int
		want string
		last uint64
	}
	cases := []*copyCase{
		{name: "record", edit: func(b []byte) []byte { b[len(b)-50] ^= 1; return b }, harm: 1},
		{name: "snapshot", edit: func(b []byte) []byte { b[600] ^= 1; return b }, harm: 1},
		{name: "zero", edit: func(b []byte) []byte { clear(b[len(b)/2 : len(b)/2+64]); return b }, harm: 1},
		{name: "cut", edit: func(b []byte) []byte { return b[:len(b)-10] }, harm: 1},
		{name: "empty", edit: func([]byte) []byte { return nil }, harm: 1},
		{name: "deleted", harm: 1},
		{name: "incomplete", edit: func(b []byte) []byte { return append(b, b[len(b)-100:]...) }},
	}
	// The journals go through the steps together: most of the time is spent on waiting for reports.
	each := func(do func(c *copyCase)) {
		t.Helper()
		for _, c := range cases {
			g.name = c.name
			do(c)
		}
	}
	g.start("a", "b", "c")
	each(func(c *copyCase) {
		g.open("a", "b", "c")
		c.last = g.append(0, 20, "a", "b", "c")
		g.snapshot("b", 15)
		c.want, _ = g.content("b")
	})
	each(func(c *copyCase) { g.awaitCopies(c.last, "a", "b", "c") })
	g.stop("a")
	each(func(c *copyCase) { g.damageCopy("a", c.edit) })
	g.start("a")
	each(func(c *copyCase) {
		g.open("a", "b", "c")
		g.until(func() string {
			got := g.member("a").register.Part("journal x/" + c.name)
			if got.Damages != c.harm || !got.Damaged.IsZero() || got.Verified.IsZero() {
				return fmt.Sprintf("%s: got %+v, want %d damages and none left", c.name, got, c.harm)
			}
			return ""
		})
		g.check(c.want, c.last)
		c.last = g.append(c.last, 3, "a", "b", "c")
		c.want, _ = g.content("a")
	})
	each(func(c *copyCase) { g.awaitCopies(c.last, "a", "b", "c") })
	// The new copies are as good as the others: the journals are rebuilt from them alone.
	g.stop("a", "b", "c")
	each(func(*copyCase) {
		g.damageCopy("b", nil)
		g.damageCopy("c", nil)
		g.deleteStream()
	})
	g.start("a", "b", "c")
	each(func(c *copyCase) {
		g.open("a", "b", "c")
		g.check(c.want, c.last)
	})
}

// damageCopy changes or, without edit, deletes a member's copy of the journal.
func (g *team) damageCopy(name string, edit func(text []byte) []byte) {
	g.t.Helper()
	text, err := os.ReadFile(g.copyFile(name))
	if err == nil && edit == nil {
		err = os.Remove(g.copyFile(name))
	} else if err == nil {
		err = os.WriteFile(g.copyFile(name), edit(text), 0o600)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// TestARebuildThatEndsMidway makes a member crash after each step of a rebuild. The other members
// finish it.
func TestARebuildThatEndsMidway(t *testing.T) {
	t.Parallel()
	g := newTeam(t)
	for steps := 1; steps <= journal.RebuildSteps; steps++ {
		t.Run(fmt.Sprintf("after step %d", steps), func(t *testing.T) {
			g.t, g.name = t, fmt.Sprintf("steps%d", steps)
			g.start("a", "b", "c")
			g.open("a", "b", "c")
			last := g.append(0, 20, "a", "b", "c")
			g.snapshot("b", 15)
			want, _ := g.content("a")
			g.awaitCopies(last, "a", "b", "c")
			client := g.newClient()
			session, err := concurrency.NewSession(client, concurrency.WithTTL(2))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), teamWait)
			defer cancel()
			if err := g.member("c").js.CrashRebuild(ctx, g.name, "crashed", session, steps); err != nil {
				t.Fatal(err)
			}
			g.stop("c")
			if steps == 1 { // the lock alone harms nobody
				g.deleteStream()
			}
			_ = session.Close() // ends the lease
			_ = client.Close()
			for _, name := range []string{"a", "b"} {
				if got, at := g.content(name); got != want || at != last {
					t.Errorf("member %s: got content %s up to %d, want %s up to %d", name, got, at, want, last)
				}
			}
			last = g.append(last, 4, "a", "b")
			want, _ = g.content("a")
			g.start("c")
			g.open("c")
			if got, at := g.content("c"); got != want || at != last {
				t.Errorf("member c: got content %s up to %d, want %s up to %d", got, at, want, last)
			}
		})
	}
}

// TestFaultJournalIsRebuilt ends the stream while members write. Acknowledged records stay.
func TestFaultJournalIsRebuilt(t *testing.T) {
	t.Parallel()
	g := newTeam(t)
	g.start("a", "b", "c")
	g.open("a", "b", "c")
	js := []engine.Journal{g.member("a").j, g.member("b").j, g.member("c").j}
	h := newHistory(t)
	stop := h.load(js, 1)
	injected, worst := 0, time.Duration(0)
	for range 3 {
		h.awaitRecovery(h.now())
		g.fenceCurrent()
		at := h.now()
		worst = max(worst, h.awaitRecovery(at))
		injected++
	}
	stop()
	h.record("journal: the stream is replaced while members write", injected, worst, js[1])
}

// fenceCurrent makes a member end the present stream, as the first steps of a rebuild do.
func (g *team) fenceCurrent() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	m := g.member("a")
	if err := m.js.CrashRebuild(ctx, g.name, "a", m.session, 2); err != nil {
		g.t.Fatal(err)
	}
}
