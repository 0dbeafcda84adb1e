package dataplane_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/dataplane"
	"freshet/internal/messaging"
	"freshet/internal/names"
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

func spec(organization, name string) dataplane.Spec {
	return dataplane.Spec{
		UID: "uid-" + organization + "-" + name, Organization: organization, Instance: "i", InstanceType: "standard",
		Name: name, Host: name + "." + organization + ".freshet.localhost", Engine: "pebble",
	}
}

func provision(t *testing.T, p *dataplane.Plane, s dataplane.Spec) *dataplane.Cluster {
	t.Helper()
	if err := p.Provision(t.Context(), s); err != nil {
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
	fallback := provision(t, p, spec("default", "default"))
	own := provision(t, p, spec("acme", "c"))
	tests := map[string]struct {
		host string
		want *dataplane.Cluster
	}{
		"its own name":                {"c.acme.freshet.localhost", own},
		"with a port":                 {"c.acme.freshet.localhost:8080", own},
		"in capitals":                 {"C.Acme.Freshet.LOCALHOST:8443", own},
		"with the root's dot":         {"c.acme.freshet.localhost.", own},
		"an address":                  {"127.0.0.1:8080", fallback},
		"an IPv6 address":             {"[::1]:8080", fallback},
		"another name":                {"stream.example", fallback},
		"nobody's name in our domain": {"gone.acme.freshet.localhost", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := p.Find(tc.host)
			if tc.want == nil {
				if !errors.Is(err, dataplane.ErrNoCluster) {
					t.Errorf("found %v, %v", got, err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("found %v, %v", got, err)
			}
		})
	}
}

func TestClustersShareNothing(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	a, b := provision(t, p, spec("acme", "a")), provision(t, p, spec("acme", "b"))
	name := topic(t, "persistent://public/default/t")
	if err := a.Broker.CreateTopic(t.Context(), name, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Broker.CreateTopic(t.Context(), name, 0, nil); err != nil {
		t.Errorf("the other cluster knows the topic: %v", err)
	}
}

func TestProvisionTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	s := spec("acme", "c")
	first := provision(t, p, s)
	if again := provision(t, p, s); again != first {
		t.Error("the cluster was opened again")
	}
	s.InstanceType = "serverless"
	changed := provision(t, p, s)
	if changed.Broker != first.Broker || !changed.RegistryAtRoot() {
		t.Error("a changed spec must keep the running cluster and be in force")
	}
}

func TestDataSurvivesAndDeletionRemovesIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := spec("acme", "c")
	name := topic(t, "persistent://public/default/kept")
	first := open(t, dir)
	if err := provision(t, first, s).Broker.CreateTopic(t.Context(), name, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	err := provision(t, second, s).Broker.CreateTopic(t.Context(), name, 0, nil)
	if !errors.Is(err, messaging.ErrTopicExists) {
		t.Errorf("after a restart: %v, want the topic to exist", err)
	}
	if err := second.Destroy(t.Context(), s.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, s.UID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data is still there: %v", err)
	}
	if err := second.Destroy(t.Context(), s.UID); err != nil {
		t.Errorf("destroying again: %v", err)
	}
	if _, err := second.Find(s.Host); !errors.Is(err, dataplane.ErrNoCluster) {
		t.Errorf("the host still answers: %v", err)
	}
}

func TestHalfDeletedClustersAreBuriedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	grave := filepath.Join(dir, "uid-x.deleted")
	if err := os.MkdirAll(filepath.Join(grave, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(grave); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
}

func TestUnknownEngineIsRefused(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	s := spec("acme", "c")
	s.Engine = "papyrus"
	if err := p.Provision(t.Context(), s); err == nil {
		t.Error("a cluster was opened on an engine that does not exist")
	}
}

func TestClusterThatCannotBeOpenedIsUnhealthy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := open(t, dir)
	mended, given := spec("acme", "mended"), spec("acme", "given")
	for _, s := range []dataplane.Spec{mended, given} {
		if err := os.WriteFile(filepath.Join(dir, s.UID), []byte("in the way"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Provision(t.Context(), s); err == nil {
			t.Fatalf("%s was opened in a file", s.Name)
		}
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "cluster acme/"+s.Name) {
			t.Errorf("health of a plane without %s: %v", s.Name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, mended.UID)); err != nil {
		t.Fatal(err)
	}
	provision(t, p, mended)
	if err := p.Destroy(t.Context(), given.UID); err != nil {
		t.Fatal(err)
	}
	if err := p.Health(); err != nil {
		t.Errorf("one works and the other is gone: %v", err)
	}
	if err := p.Destroy(t.Context(), ""); err == nil {
		t.Error("nothing was destroyed without complaint")
	}
	if !p.Has(mended.UID) {
		t.Error("the other cluster went with it")
	}
}
