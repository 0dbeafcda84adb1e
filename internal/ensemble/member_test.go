package ensemble_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/membership"
	"freshet/internal/storage/engine"
	"freshet/test/freeport"
)

// externalEtcd is an etcd that the members do not run.
type externalEtcd struct{}

func (externalEtcd) Leader() string                         { return "" }
func (externalEtcd) StepDown(context.Context) (bool, error) { return false, nil }
func (externalEtcd) Replace(context.Context, string) error  { return errors.New("unexpected call") }
func (externalEtcd) External() bool                         { return true }

// noLimit lets a listener accept any number of connections.
type noLimit struct{}

func (noLimit) Apply(l net.Listener) net.Listener { return l }

// upToDate is a state that is never stale.
type upToDate struct{}

func (upToDate) CatchUp(context.Context) error { return nil }

// openMembers opens the named members of an ensemble of a, b and c, up to their internal ports.
func openMembers(t *testing.T, names ...string) map[string]*ensemble.Member {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	var list []bundle.Member
	for i, name := range []string{"a", "b", "c"} {
		list = append(list, bundle.Member{Name: name, Internal: addresses[i], Etcd: addresses[i], Log: addresses[i]})
	}
	made, err := bundle.New("https://freshet.example.com", list, []byte("keys"))
	if err != nil {
		t.Fatal(err)
	}
	opened := map[string]*ensemble.Member{}
	for _, name := range names {
		dir := t.TempDir()
		certificates := filepath.Join(dir, "members")
		part, err := made.Bundle(name, false)
		if err == nil {
			err = part.Install(bundle.Paths{
				DataDir: dir, CertDir: certificates, EncryptionKeys: filepath.Join(dir, "encryption.key"),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := ensemble.Open(ensemble.Options{
			Self: name, Members: list, BundleDir: certificates, Log: slog.New(slog.DiscardHandler),
			IntegrityDir: t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		failed := make(chan error, 1)
		if err := m.Listen(t.Context(), ensemble.ListenOptions{Limit: noLimit{}, Failed: failed}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			select {
			case err := <-failed:
				t.Errorf("internal port: %v", err)
			default:
			}
		})
		opened[name] = m
	}
	return opened
}

func join(t *testing.T, m *ensemble.Member, client *clientv3.Client) {
	t.Helper()
	err := m.Join(t.Context(), ensemble.JoinOptions{
		Client: client, Prefix: "/freshet", Etcd: externalEtcd{}, State: upToDate{},
		Record: membership.Record{Version: "v1", Stream: m.Self() + ":9092"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
}

// openEtcd starts an etcd and returns a client of it.
func openEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	store, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client, err := store.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestMemberBeforeJoin checks that a member without a lease is not alive and that its shutdown
// works.
func TestMemberBeforeJoin(t *testing.T) {
	t.Parallel()
	m := openMembers(t, "a")["a"]
	if m.Alive() {
		t.Error("member without a lease is alive")
	}
	if _, err := m.StepDown(t.Context(), "a"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("step down: got error %v, want that the member is starting", err)
	}
	if _, err := m.StepDown(t.Context(), "x"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("step down of an unknown member: got error %v, want NotFound", err)
	}
	m.Retire()
	<-m.StopLeading(t.Context())
	m.StopConfirming()
	m.Leave()
	m.Shutdown(t.Context())
}

// TestMembers checks two members: who is alive, who owns, confirm on all, lead, status.
func TestMembers(t *testing.T) {
	t.Parallel()
	members, client := openMembers(t, "a", "b"), openEtcd(t)
	a, b := members["a"], members["b"]
	for _, m := range []*ensemble.Member{a, b} {
		join(t, m, client)
		m.FinishLoading()
	}
	if !a.Alive() || !b.Alive() {
		t.Fatalf("alive: got %t and %t, want both", a.Alive(), b.Alive())
	}
	if a.Sender(engine.Owner{Member: "a"}) != nil || a.Sender(engine.Owner{}) != nil {
		t.Error("got a sender to this member or to no owner, want nil")
	}
	if a.Sender(engine.Owner{Member: "b"}) == nil {
		t.Error("got no sender to another member, want one")
	}

	a.Confirm(map[string]bool{"ignored": true}) // b does not read stored resources yet
	received := make(chan string, 1)
	b.Receive(func(_ context.Context, change []byte) error {
		received <- string(change)
		return nil
	})
	a.Confirm(map[string]bool{"signingKeys": true})
	select {
	case got := <-received:
		if got != `{"signingKeys":true}` {
			t.Errorf("change: got %s", got)
		}
	default:
		t.Error("Confirm returned before the other member had applied the change")
	}

	leading, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Lead(t.Context(), func(ctx context.Context) error {
			close(leading)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-leading
	checkStatus(t, a)
	b.SetApplied(func() map[string]uint64 { return map[string]uint64{"u/0": 7} })
	status, err := a.Status(t.Context())
	if err != nil || status.Applied["b"]["u/0"] != 7 {
		t.Errorf("status: got %+v, %v; want the applied positions of b", status, err)
	}
	if err := a.Replace(t.Context(), "b"); errs.KindOf(err) != errs.Conflict {
		t.Errorf("replacing a live member: got error %v, want Conflict", err)
	}
	if err := a.Replace(t.Context(), "c"); errs.KindOf(err) != errs.Precondition {
		t.Errorf("replacing a member with an external etcd: got error %v, want Precondition", err)
	}
	<-a.StopLeading(t.Context())
	<-ended
}

func checkStatus(t *testing.T, a *ensemble.Member) {
	t.Helper()
	a.SetReady(t.Context(), true)
	var status *ensemble.Status
	for deadline := time.Now().Add(10 * time.Second); ; {
		var err error
		if status, err = a.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := status.Members[0].Record; r != nil && r.Ready || time.Now().After(deadline) {
			break // a has seen its own record
		}
	}
	if status.Self != "a" || status.Controller != "a" || len(status.Members) != 3 {
		t.Fatalf("status: got %+v, want three members and a as the controller", status)
	}
	for i, want := range []struct {
		node    int
		live    bool
		problem string
	}{{1, true, ""}, {2, true, "starting or stopping"}, {3, false, "no lease"}} {
		got := status.Members[i]
		if got.Node != want.node || (got.Record != nil) != want.live || (got.Problem == "") != (want.problem == "") ||
			!strings.Contains(got.Problem, want.problem) {
			t.Errorf("member %s: got %+v, want %+v", got.Name, got, want)
		}
	}
}
