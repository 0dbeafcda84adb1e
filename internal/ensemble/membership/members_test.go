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

// store starts an etcd server.
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

// join opens a member. The test's cleanup closes it unless leave was called.
func join(t *testing.T, c *clientv3.Client, name string, state membership.State) (g *membership.Ensemble,
	leave func(),
) {
	t.Helper()
	g, err := membership.Open(t.Context(), membership.Options{
		Etcd: c, Prefix: "/freshet/members", Self: membership.Record{Name: name, Internal: name + ":7443"}, TTL: ttl,
		State: state, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	leave = sync.OnceFunc(g.Close)
	t.Cleanup(leave)
	return g, leave
}

// await waits until a condition holds.
func await(t *testing.T, g *membership.Ensemble, what string, yes func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !yes() {
		if err := g.Changed(ctx); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func names(g *membership.Ensemble) []string {
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
		t.Errorf("a member that left was listed for %s, want less than its lease", took)
	}
	if b.Alive() {
		t.Error("a member that left is alive")
	}
}

// slowState catches up at the second attempt.
type slowState struct{ calls atomic.Int32 }

func (s *slowState) CatchUp(context.Context) error {
	if s.calls.Add(1) == 1 {
		return errors.New("not yet")
	}
	return nil
}

// TestFaultStoreLost revokes a member's lease: the member stops being alive within the
// lease's time to live, and is alive again after it has caught up.
func TestFaultStoreLost(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	state := &slowState{}
	g, _ := join(t, c, "a", state)
	first := g.Session().Lease()
	began := time.Now()
	if _, err := c.Revoke(t.Context(), first); err != nil { // as if the lease had expired
		t.Fatal(err)
	}
	await(t, g, "the member notices", func() bool { return !g.Alive() })
	if took := time.Since(began); took > ttl {
		t.Errorf("the member noticed after %s, want less than %s", took, ttl)
	}
	await(t, g, "the member is alive again", g.Alive)
	if n := state.calls.Load(); n != 2 {
		t.Errorf("CatchUp was called %d times, want 2: the first call fails", n)
	}
	if now := g.Session().Lease(); now == first {
		t.Error("got the lost lease, want a new one")
	}
	tally.Fault{Name: "lease of a member lost", Injected: 1, Checked: 1, Recovery: time.Since(began)}.Record(t)
}

// TestFaultSessionEnded ends the session of a member while its lease is valid, as when the responses to the
// session's renewals are late: the member gets a new lease and session.
func TestFaultSessionEnded(t *testing.T) {
	t.Parallel()
	g, _ := join(t, client(t, store(t)), "a", nil)
	first, began := g.Session(), time.Now()
	first.Orphan()
	await(t, g, "the member has another session", func() bool {
		session := g.Session()
		return session != nil && session != first && g.Alive()
	})
	if g.Session().Lease() == first.Lease() {
		t.Error("got the session's old lease, want a new one")
	}
	tally.Fault{Name: "session of a member ended", Injected: 1, Checked: 1, Recovery: time.Since(began)}.Record(t)
}

// TestARetiredMemberStaysOut: other members revoke the lease of a member that shuts down
// and has closed its listener. That member must not acquire a new lease.
func TestARetiredMemberStaysOut(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	await(t, a, "a sees b", func() bool { return slices.Equal(names(a), []string{"a", "b"}) })
	b.Retire()
	if !b.Alive() {
		t.Error("retired member with its lease is not alive")
	}
	if _, err := c.Revoke(t.Context(), b.Session().Lease()); err != nil {
		t.Fatal(err)
	}
	await(t, b, "b has no lease", func() bool { return b.Session() == nil })
	if b.Alive() {
		t.Error("retired member without its lease is alive")
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
	leaders := make(chan string, 16)
	work := func(name string) func(context.Context) {
		return func(ctx context.Context) {
			most.Store(max(most.Load(), leading.Add(1)))
			leaders <- name
			<-ctx.Done()
			leading.Add(-1)
		}
	}
	leadA, stopA := context.WithCancel(t.Context())
	leadB, stopB := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.Lead(leadA, work("a")) })
	if first := <-leaders; first != "a" {
		t.Fatalf("got %s, want a", first)
	}
	running.Go(func() { b.Lead(leadB, work("b")) })
	if now, err := b.Controller(t.Context()); err != nil || now != "a" {
		t.Errorf("got %q, %v, want a", now, err)
	}
	began := time.Now()
	stopA()
	if next := <-leaders; next != "b" {
		t.Fatalf("got %s, want b", next)
	}
	if took := time.Since(began); took > ttl/2 {
		t.Errorf("the handover took %s, want less than %s", took, ttl/2)
	}
	// A leader that loses its lease stops, and a member with a valid lease follows.
	if _, err := c.Revoke(t.Context(), b.Session().Lease()); err != nil {
		t.Fatal(err)
	}
	if next := <-leaders; next != "b" {
		t.Errorf("got %s, want b with its new lease", next)
	}
	stopB()
	running.Wait()
	if most.Load() != 1 {
		t.Errorf("%d members led at the same time, want 1", most.Load())
	}
}

// crashes is the network to a member whose machine refuses connections from the moment when the
// channel is closed.
type crashes <-chan struct{}

func (c crashes) Probe(context.Context, string) error {
	select {
	case <-c:
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	default:
		return errors.New("slow")
	}
}

// TestFaultCrashedMember: a member whose machine refuses connections loses its lease before
// it expires.
func TestFaultCrashedMember(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	crashed := make(chan struct{})
	a, err := membership.Open(t.Context(), membership.Options{
		Etcd: c, Prefix: "/freshet/members", Self: membership.Record{Name: "a"}, TTL: 5 * ttl,
		Log: slog.New(slog.DiscardHandler), Prober: crashes(crashed),
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
		t.Errorf("the lease ended after %s, want much less than its time to live", took)
	}
	tally.Fault{Name: "crashed member", Injected: 1, Checked: 1, Recovery: took}.Record(t)
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	_, _ = join(t, c, "c", nil)
	var notified sync.Map
	var failed atomic.Bool
	err := a.Confirm(t.Context(), func(_ context.Context, m membership.Record) error {
		if m.Name == "b" && !failed.Swap(true) {
			return errors.New("temporary failure")
		}
		notified.Store(m.Name, true)
		return nil
	})
	_, toB := notified.Load("b")
	_, toC := notified.Load("c")
	_, toA := notified.Load("a")
	if err != nil || !toB || !toC || toA {
		t.Errorf("got b=%v c=%v a=%v (%v), want b and c", toB, toC, toA, err)
	}
	if !b.Alive() {
		t.Error("a member that responded at the second attempt has lost its lease")
	}
}

// TestFaultSilentMember: Confirm does not return while a member that does not respond may
// still serve clients.
func TestFaultSilentMember(t *testing.T) {
	t.Parallel()
	c := client(t, store(t))
	a, _ := join(t, c, "a", nil)
	b, _ := join(t, c, "b", nil)
	old := b.Session().Lease()
	began := time.Now()
	err := a.Confirm(t.Context(), func(context.Context, membership.Record) error { return errors.New("unreachable") })
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if session := b.Session(); session != nil && session.Lease() == old {
		t.Error("Confirm returned while the unresponsive member had its lease")
	}
	if took < ttl || took > 10*ttl {
		t.Errorf("Confirm took %s, want between %s and %s", took, ttl, 10*ttl)
	}
	await(t, b, "the unresponsive member is alive again", b.Alive)
	tally.Fault{Name: "unresponsive member", Injected: 1, Checked: 1, Recovery: took}.Record(t)
}
