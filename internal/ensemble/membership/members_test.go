package membership_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/membership"
	"freshet/test/tally"
)

const ttl = 2 * time.Second

// store starts an etcd of its own.
func store(t *testing.T) *etcd.Member {
	t.Helper()
	m, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func client(t *testing.T, m *etcd.Member) *clientv3.Client {
	t.Helper()
	c, err := m.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// join opens a member, which is closed with the test unless that was done before.
func join(t *testing.T, c *clientv3.Client, name string,
	catchUp func(context.Context) error,
) (g *membership.Group, leave func()) {
	t.Helper()
	g, err := membership.Open(t.Context(), membership.Options{
		Etcd: c, Prefix: "/freshet/members", Self: membership.Record{Name: name, Internal: name + ":7443"}, TTL: ttl,
		CatchUp: catchUp,
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	leave = sync.OnceFunc(g.Close)
	t.Cleanup(leave)
	return g, leave
}

// await waits until something is so.
func await(t *testing.T, g *membership.Group, what string, yes func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !yes() {
		if err := g.Changed(ctx); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func names(g *membership.Group) []string {
	var list []string
	for _, record := range g.Live() {
		list = append(list, record.Name)
	}
	return list
}

func TestMembersSeeEachOther(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, leave := join(t, c, "b", nil)
	await(t, a, "a sees b", func() bool { return slices.Equal(names(a), []string{"a", "b"}) })
	if err := b.SetReady(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	await(t, a, "b is ready", func() bool {
		r, _ := a.Find("b")
		return r.Ready && r.Internal == "b:7443" && r.Lease == b.Session().Lease()
	})
	began := time.Now()
	leave()
	await(t, a, "b has left", func() bool { return slices.Equal(names(a), []string{"a"}) })
	if took := time.Since(began); took > ttl {
		t.Errorf("a member that left was seen for %s, want less than its lease", took)
	}
	if b.Alive() {
		t.Error("a member that left says that it is alive")
	}
}

// TestFaultStoreLost takes the store away: the member stops being alive before its
// lease could have ended, and is alive again once it has caught up.
func TestFaultStoreLost(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	var caught atomic.Int32
	g, _ := join(t, c, "a", func(context.Context) error {
		if caught.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	first := g.Session().Lease()
	began := time.Now()
	if _, err := c.Revoke(t.Context(), first); err != nil { // as if nobody had renewed it
		t.Fatal(err)
	}
	await(t, g, "it notices", func() bool { return !g.Alive() })
	if took := time.Since(began); took > ttl {
		t.Errorf("it noticed after %s, want less than %s", took, ttl)
	}
	await(t, g, "it is back", g.Alive)
	if n := caught.Load(); n != 2 {
		t.Errorf("it caught up %d times, want 2: once in vain", n)
	}
	if now := g.Session().Lease(); now == first {
		t.Error("got the lost lease, want another one")
	}
	tally.Fault{Name: "lease of a member lost", Injected: 1, Checked: 1, Recovery: time.Since(began)}.Record(t)
}

// TestARetiredMemberStaysOut: others take the lease of a member that stops and does not
// listen any more. It must not come back for the moments that are left to it.
func TestARetiredMemberStaysOut(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	await(t, a, "a sees b", func() bool { return slices.Equal(names(a), []string{"a", "b"}) })
	b.Retire()
	if !b.Alive() {
		t.Error("a retired member with its lease: got dead, want alive")
	}
	if _, err := c.Revoke(t.Context(), b.Session().Lease()); err != nil {
		t.Fatal(err)
	}
	await(t, b, "b has no lease", func() bool { return b.Session() == nil })
	if b.Alive() {
		t.Error("a retired member without its lease: got alive, want dead")
	}
	await(t, a, "b has left", func() bool { return slices.Equal(names(a), []string{"a"}) })
	again, cancel := context.WithTimeout(t.Context(), ttl)
	defer cancel()
	for a.Changed(again) == nil {
		if got := names(a); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("members after b has left: got %v, want a alone", got)
		}
	}
}

func TestOneMemberLeads(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	var leading, most atomic.Int32
	who := make(chan string, 16)
	work := func(name string) func(context.Context) {
		return func(ctx context.Context) {
			most.Store(max(most.Load(), leading.Add(1)))
			who <- name
			<-ctx.Done()
			leading.Add(-1)
		}
	}
	leadA, stopA := context.WithCancel(t.Context())
	leadB, stopB := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.Lead(leadA, work("a")) })
	if first := <-who; first != "a" {
		t.Fatalf("got %s, want a", first)
	}
	running.Go(func() { b.Lead(leadB, work("b")) })
	if now, err := b.Controller(t.Context()); err != nil || now != "a" {
		t.Errorf("got %q, %v, want a", now, err)
	}
	began := time.Now()
	stopA()
	if next := <-who; next != "b" {
		t.Fatalf("got %s, want b", next)
	}
	if took := time.Since(began); took > ttl/2 {
		t.Errorf("the hand-over took %s, want it at once", took)
	}
	// One that loses its lease stops, and another one, or itself, follows.
	if _, err := c.Revoke(t.Context(), b.Session().Lease()); err != nil {
		t.Fatal(err)
	}
	if next := <-who; next != "b" {
		t.Errorf("got %s, want b with its new lease", next)
	}
	stopB()
	running.Wait()
	if most.Load() != 1 {
		t.Errorf("%d members led at once, want 1", most.Load())
	}
}

// TestFaultCrashedMember has one whose machine says that it is gone: nobody waits for
// its lease.
func TestFaultCrashedMember(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	crashed := make(chan struct{})
	a, err := membership.Open(t.Context(), membership.Options{
		Etcd: c, Prefix: "/freshet/members", Self: membership.Record{Name: "a"}, TTL: 5 * ttl,
		Log: slog.New(slog.DiscardHandler),
		Reach: func(context.Context, string) error {
			select {
			case <-crashed:
				return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			default:
				return errors.New("slow")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	b, _ := join(t, c, "b", nil)
	lease := b.Session().Lease()
	await(t, a, "a sees b", func() bool { _, ok := a.Find("b"); return ok })
	began := time.Now()
	close(crashed)
	await(t, a, "b has lost its lease", func() bool { r, ok := a.Find("b"); return !ok || r.Lease != lease })
	took := time.Since(began)
	if took > 4*ttl {
		t.Errorf("it took %s, want much less than the lease", took)
	}
	tally.Fault{Name: "member that crashed", Injected: 1, Checked: 1, Recovery: took}.Record(t)
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	_, _ = join(t, c, "c", nil)
	var told sync.Map
	var failed atomic.Bool
	err := a.Confirm(t.Context(), func(_ context.Context, m membership.Record) error {
		if m.Name == "b" && !failed.Swap(true) {
			return errors.New("a moment of trouble")
		}
		told.Store(m.Name, true)
		return nil
	})
	_, toB := told.Load("b")
	_, toC := told.Load("c")
	_, toA := told.Load("a")
	if err != nil || !toB || !toC || toA {
		t.Errorf("got b=%v c=%v a=%v (%v), want the two others", toB, toC, toA, err)
	}
	if !b.Alive() {
		t.Error("a member that answered the second time has lost its lease")
	}
}

// TestFaultSilentMember has one that does not answer: nothing is confirmed while it
// may still serve somebody.
func TestFaultSilentMember(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	old := b.Session().Lease()
	began := time.Now()
	err := a.Confirm(t.Context(), func(context.Context, membership.Record) error { return errors.New("no way there") })
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if session := b.Session(); session != nil && session.Lease() == old {
		t.Error("it was confirmed while the silent member had its lease")
	}
	if took < ttl || took > 10*ttl {
		t.Errorf("it took %s, want the time of a lease and a little more", took)
	}
	await(t, b, "the silent member is back", b.Alive)
	tally.Fault{Name: "member that does not answer the others", Injected: 1, Checked: 1, Recovery: took}.Record(t)
}
