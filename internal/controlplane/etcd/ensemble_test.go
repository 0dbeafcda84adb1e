package etcd_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/bundle"
	"freshet/test/freeport"
	"freshet/test/tally"
)

// trio is an ensemble of three members in this process.
type trio struct {
	names   []string
	options map[string]etcd.Ensemble
	dirs    map[string]string
	members map[string]*etcd.Member
	waits   map[string]waitSignal
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	g := &trio{
		names: []string{"a", "b", "c"}, options: map[string]etcd.Ensemble{}, dirs: map[string]string{},
		members: map[string]*etcd.Member{}, waits: map[string]waitSignal{},
	}
	var peers []etcd.Peer
	var list []bundle.Member
	for _, name := range g.names {
		at := freeAddress(t)
		peers = append(peers, etcd.Peer{Name: name, Address: at})
		list = append(list, bundle.Member{Name: name, Internal: "127.0.0.1:1", Etcd: at, Log: "127.0.0.1:2"})
	}
	ensemble, err := bundle.New("https://freshet.example.com", list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range g.names {
		part, err := ensemble.Bundle(name, false)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := part.Install(bundle.Paths{
			DataDir: dir, CertDir: dir,
			EncryptionKeys: filepath.Join(dir, "keys"),
		}); err != nil {
			t.Fatal(err)
		}
		files := bundle.FilesIn(dir)
		waits := make(waitSignal, 1)
		g.waits[name] = waits
		g.dirs[name] = filepath.Join(t.TempDir(), "etcd")
		g.options[name] = etcd.Ensemble{
			Self: name, Peers: peers, Listen: peers[i].Address, ID: ensemble.ID, CAFile: files.CA, CertFile: files.Cert,
			KeyFile: files.Key, Reporter: waits,
		}
	}
	t.Cleanup(func() {
		for _, m := range g.members {
			_ = m.Close()
		}
	})
	return g
}

// waitSignal receives a value when its member reports that it waits.
type waitSignal chan struct{}

// ReportWaiting implements etcd.Reporter.
func (s waitSignal) ReportWaiting(string) {
	select {
	case s <- struct{}{}:
	default:
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// start starts members at the same time and returns when all are ready.
func (g *trio) start(t *testing.T, names ...string) {
	t.Helper()
	g.begin(t, names...)()
}

// begin starts members at the same time; the function that it returns waits until all are ready.
func (g *trio) begin(t *testing.T, names ...string) (ready func()) {
	t.Helper()
	type result struct {
		name   string
		member *etcd.Member
		err    error
	}
	results := make(chan result, len(names))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	for _, name := range names {
		go func() {
			options := g.options[name]
			m, err := etcd.Join(ctx, g.dirs[name], &options, etcd.Options{Unsafe: true})
			results <- result{name, m, err}
		}()
	}
	return func() {
		t.Helper()
		defer cancel()
		for range names {
			r := <-results
			if r.err != nil {
				t.Fatalf("member %s: %v", r.name, r.err)
			}
			g.members[r.name] = r.member
		}
	}
}

func (g *trio) stop(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := g.members[name].Close(); err != nil {
			t.Fatal(err)
		}
		delete(g.members, name)
	}
}

// put writes a key through one member.
func (g *trio) put(t *testing.T, at, key string) error {
	t.Helper()
	client := g.members[at].Client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := client.Put(ctx, key, key)
	return err
}

func (g *trio) exists(t *testing.T, at, key string) bool {
	t.Helper()
	client := g.members[at].Client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := client.Get(ctx, key)
	if err != nil {
		t.Fatalf("get at %s: %v", at, err)
	}
	return len(got.Kvs) == 1
}

// TestFaultEnsemble stops one and two members of an ensemble, and replaces one by an empty member.
// Every acknowledged write must be readable at every member.
func TestFaultEnsemble(t *testing.T) {
	t.Parallel()
	g := newTrio(t)
	fault := tally.Fault{Name: "etcd member of an ensemble stopped, lost and replaced"}
	check := func(at string, keys ...string) {
		for _, key := range keys {
			fault.Checked++
			if !g.exists(t, at, key) {
				fault.Lost++
				t.Errorf("%s: %s is missing", at, key)
			}
		}
	}
	write := func(at, key string) {
		if err := g.put(t, at, key); err != nil {
			t.Fatalf("put at %s: %v", at, err)
		}
	}
	g.start(t, g.names...)
	if len(g.waits["a"]) == 0 {
		t.Error("member a did not report that it waits for a majority")
	}
	write("a", "one")
	check("b", "one")
	check("c", "one")

	g.stop(t, "a")
	fault.Injected++
	write("b", "two")
	check("c", "one", "two")

	g.stop(t, "b") // c is alone
	fault.Injected++
	if err := g.put(t, "c", "never"); err == nil {
		fault.Wrong++
		t.Error("member without a majority accepted a write")
	}
	began := time.Now()
	g.start(t, "a")
	check("a", "one", "two")
	fault.Recovery = time.Since(began)

	if !tally.Long() { // etcd requires members to be connected for some seconds before it adds one
		fault.Record(t)
		return
	}
	// b has lost its disk and must not rejoin under its old identity.
	g.dirs["b"] = filepath.Join(t.TempDir(), "etcd")
	options := g.options["b"]
	if m, err := etcd.Join(t.Context(), g.dirs["b"], &options, etcd.Options{Unsafe: true}); !errors.Is(err,
		etcd.ErrDataLost) {
		if m != nil {
			_ = m.Close()
		}
		t.Fatalf("empty member under an old name: got %v, want %v", err, etcd.ErrDataLost)
	}
	client := g.members["a"].Client()
	defer client.Close()
	for range 2 { // Replace is idempotent
		if err := etcd.ReplaceMember(t.Context(), client, etcd.Peer{Name: "b", Address: options.Listen}); err != nil {
			t.Fatal(err)
		}
	}
	options.Existing = true
	g.options["b"], g.dirs["b"] = options, filepath.Join(t.TempDir(), "etcd")
	g.start(t, "b")
	fault.Injected++
	check("b", "one", "two")
	write("b", "three")
	check("a", "three")
	if leader := g.members["b"].Leader(); leader == "" {
		t.Error("b reports no leader")
	}
	g.stop(t, g.names...)
	g.start(t, g.names...)
	fault.Injected++
	check("c", "one", "two", "three")
	fault.Record(t)
}

// TestStepDown checks that a leader transfers leadership on request, and that writes before and
// after it are kept.
func TestStepDown(t *testing.T) {
	t.Parallel()
	g := newTrio(t)
	g.start(t, g.names...)
	if err := g.put(t, "a", "before"); err != nil {
		t.Fatal(err)
	}
	leader := g.members["a"].Leader()
	for _, name := range g.names {
		if name == leader {
			continue
		}
		if led, err := g.members[name].StepDown(t.Context()); led || err != nil {
			t.Errorf("%s, which does not lead: got %t and error %v, want false and no error", name, led, err)
		}
	}
	if led, err := g.members[leader].StepDown(t.Context()); !led || err != nil {
		t.Fatalf("%s, which leads: got %t and error %v, want true", leader, led, err)
	}
	if now := g.members[leader].Leader(); now == leader || now == "" {
		t.Errorf("leader after %s stepped down: got %q, want another", leader, now)
	}
	if err := g.put(t, leader, "after"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"before", "after"} {
		if !g.exists(t, "c", key) {
			t.Errorf("%s is missing", key)
		}
	}
}

// TestAllStop checks that a leader does not wait for etcd's full timeout when all members stop at
// the same time and none can become leader.
func TestAllStop(t *testing.T) {
	t.Parallel()
	g := newTrio(t)
	g.start(t, g.names...)
	began := time.Now()
	g.stopAll(t)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("members stopped after %s, want little more than the 2s that a leader waits for others", took)
	}
}

// stopAll stops all members at the same time.
func (g *trio) stopAll(t *testing.T) {
	t.Helper()
	var stopping sync.WaitGroup
	for _, name := range g.names {
		stopping.Go(func() {
			if err := g.members[name].Close(); err != nil {
				t.Errorf("stopping %s: %v", name, err)
			}
		})
	}
	stopping.Wait()
	clear(g.members)
}
