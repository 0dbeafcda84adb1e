package dataplane_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/storage/engine"
)

func open(t *testing.T, dir string) *dataplane.Plane {
	t.Helper()
	p, err := dataplane.Open(dataplane.Options{
		Dir: dir, Domain: "freshet.localhost",
		DefaultOrganization: "default", DefaultName: "default",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func spec(organization, name string) provision.Spec {
	return provision.Spec{
		UID: "uid-" + organization + "-" + name, Organization: organization, Instance: "i",
		Name: name, Host: name + "." + organization + ".freshet.localhost", Engine: "pebble",
	}
}

// ignore discards progress reports.
func ignore(provision.Part) {}

func running(t *testing.T, p *dataplane.Plane, s provision.Spec) *dataplane.Cluster {
	t.Helper()
	if err := p.Provision(t.Context(), s, ignore); err != nil {
		t.Fatal(err)
	}
	c, err := p.Find(s.Host)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func topic(t *testing.T, text string) names.Topic {
	t.Helper()
	name, err := names.ParseTopic(text)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFindByHost(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	fallback := running(t, p, spec("default", "default"))
	own := running(t, p, spec("acme", "c"))
	tests := map[string]struct {
		host string
		want *dataplane.Cluster
	}{
		"own name":                     {"c.acme.freshet.localhost", own},
		"with a port":                  {"c.acme.freshet.localhost:8080", own},
		"upper case":                   {"C.Acme.Freshet.LOCALHOST:8443", own},
		"with a trailing dot":          {"c.acme.freshet.localhost.", own},
		"an address":                   {"127.0.0.1:8080", fallback},
		"an IPv6 address":              {"[::1]:8080", fallback},
		"another name":                 {"stream.example", fallback},
		"an unused name in the domain": {"gone.acme.freshet.localhost", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := p.Find(tc.host)
			if tc.want == nil {
				if !errors.Is(err, dataplane.ErrNoCluster) {
					t.Errorf("got cluster %v, %v; want %v", got, err, dataplane.ErrNoCluster)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got cluster %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestFindByName(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	running(t, p, spec("default", "default"))
	own, other := running(t, p, spec("acme", "c")), running(t, p, spec("other", "c"))
	want := func(organization, name string, want *dataplane.Cluster) {
		t.Helper()
		got, err := p.FindNamed(organization, name)
		if got != want || (want == nil) != errors.Is(err, dataplane.ErrNoSuchName) {
			t.Errorf("%s/%s: got %v, %v, want %v", organization, name, got, err, want)
		}
	}
	want("acme", "c", own)
	want("other", "c", other)
	want("acme", "gone", nil)
	want("", "", nil)
	want("acme/c", "", nil)
	// A new cluster takes over the name of an old one before the old one is destroyed.
	again := spec("acme", "c")
	again.UID = "another"
	newer := running(t, p, again)
	if err := p.Destroy(t.Context(), own.UID); err != nil {
		t.Fatal(err)
	}
	want("acme", "c", newer)
	if got, err := p.Find(newer.Host); got != newer {
		t.Errorf("by host: got %v, %v, want the newer cluster", got, err)
	}
	if err := p.Destroy(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	want("acme", "c", nil)
}

func TestClustersShareNothing(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	a, b := running(t, p, spec("acme", "a")), running(t, p, spec("acme", "b"))
	name := topic(t, "persistent://public/default/t")
	if err := a.Broker.Catalogue.CreateTopic(t.Context(), name, messaging.NewTopic{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Broker.Catalogue.CreateTopic(t.Context(), name, messaging.NewTopic{}); err != nil {
		t.Errorf("the topic exists in the other cluster: %v", err)
	}
}

func TestProvisionReportsEachPart(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	var got []provision.Part
	for range 2 { // the second call has nothing to report
		if err := p.Provision(t.Context(), spec("acme", "c"),
			func(part provision.Part) { got = append(got, part) }); err != nil {
			t.Fatal(err)
		}
	}
	if want := []provision.Part{
		provision.Storage, provision.Metadata, provision.Broker,
		provision.Proxy,
	}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

func TestProvisionTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	s := spec("acme", "c")
	first := running(t, p, s)
	if again := running(t, p, s); again != first {
		t.Error("the cluster was opened again")
	}
	s.RegistryAtRoot = true
	changed := running(t, p, s)
	if changed.Broker != first.Broker || !changed.RegistryAtRoot {
		t.Error("a changed spec must keep the running cluster and take effect")
	}
}

func TestDataSurvivesAndDeletionRemovesIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := spec("acme", "c")
	name := topic(t, "persistent://public/default/kept")
	first := open(t, dir)
	if err := running(t, first, s).Broker.Catalogue.CreateTopic(t.Context(), name, messaging.NewTopic{}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	err := running(t, second, s).Broker.Catalogue.CreateTopic(t.Context(), name, messaging.NewTopic{})
	if !errors.Is(err, messaging.ErrTopicExists) {
		t.Errorf("after a restart: %v, want the topic to exist", err)
	}
	if err := second.Destroy(t.Context(), s.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, s.UID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data still exists: %v", err)
	}
	if err := second.Destroy(t.Context(), s.UID); err != nil {
		t.Errorf("destroying again: %v", err)
	}
	if _, err := second.Find(s.Host); !errors.Is(err, dataplane.ErrNoCluster) {
		t.Errorf("the host is still served: %v", err)
	}
}

func TestHalfDeletedClustersAreRemovedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leftover := filepath.Join(dir, "uid-x.deleted")
	if err := os.MkdirAll(filepath.Join(leftover, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover still exists: %v", err)
	}
}

func TestUnknownEngineIsRefused(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	s := spec("acme", "c")
	s.Engine = "papyrus"
	if err := p.Provision(t.Context(), s, ignore); err == nil {
		t.Error("a cluster was opened on an engine that does not exist")
	}
}

func TestClusterThatCannotBeOpenedIsUnhealthy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := open(t, dir)
	mended, destroyed := spec("acme", "mended"), spec("acme", "given")
	for _, s := range []provision.Spec{mended, destroyed} {
		if err := os.WriteFile(filepath.Join(dir, s.UID), []byte("in the way"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Provision(t.Context(), s, ignore); err == nil {
			t.Fatalf("%s was opened although its directory is a file", s.Name)
		}
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "cluster acme/"+s.Name) {
			t.Errorf("health of a plane without %s: %v", s.Name, err)
		}
		_, byHost := p.Find(s.Host)
		_, byName := p.FindNamed(s.Organization, s.Name)
		if !errors.Is(byHost, engine.ErrNotOpen) || !errors.Is(byName, engine.ErrNotOpen) {
			t.Errorf("%s: got %v by host and %v by name, want %v", s.Name, byHost, byName, engine.ErrNotOpen)
		}
	}
	if err := os.Remove(filepath.Join(dir, mended.UID)); err != nil {
		t.Fatal(err)
	}
	running(t, p, mended)
	if err := p.Destroy(t.Context(), destroyed.UID); err != nil {
		t.Fatal(err)
	}
	if err := p.Health(); err != nil {
		t.Errorf("health with one cluster open and the other destroyed: %v", err)
	}
	if err := p.Destroy(t.Context(), ""); err == nil {
		t.Error("destroying an empty UID: got no error")
	}
	if !p.Has(mended.UID) {
		t.Error("destroying an empty UID removed the other cluster")
	}
}

// TestDamagedClusterIsNotAnEmptyOne: whichever part of a cluster's store is missing, clients
// get an error about damage, at its host names and where it is the default cluster.
func TestDamagedClusterIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(store string) error{
		"the whole store": os.RemoveAll,
		"the manifest":    func(store string) error { return removeAll(store, "marker.manifest.*") },
		"the logs":        func(store string) error { return removeAll(store, "*.log") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := spec("default", "default") // the default cluster of these tests
			first := open(t, dir)
			running(t, first, s)
			if err := errors.Join(first.Close(), damage(filepath.Join(dir, s.UID))); err != nil {
				t.Fatal(err)
			}
			s.Existing = true
			second := open(t, dir)
			for range 2 {
				if err := second.Provision(t.Context(), s, ignore); !errors.Is(err, engine.ErrCorrupt) {
					t.Errorf("provision: got %v, want %v", err, engine.ErrCorrupt)
				}
			}
			for _, host := range []string{s.Host, "nobody.example"} {
				if _, err := second.Find(host); !errors.Is(err, engine.ErrCorrupt) {
					t.Errorf("%s: got %v, want %v", host, err, engine.ErrCorrupt)
				}
			}
			if err := second.Health(); !errors.Is(err, engine.ErrCorrupt) {
				t.Errorf("health: got %v, want %v", err, engine.ErrCorrupt)
			}
		})
	}
}

func removeAll(dir, pattern string) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(names) == 0 {
		err = errors.New("no file matches")
	}
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
