package java_test

import (
	"strings"
	"testing"

	"freshet/test/ensemble/chaos"
)

// startEnsemble starts three members and returns their addresses and credentials.
func startEnsemble(t *testing.T) access {
	t.Helper()
	dir := t.TempDir()
	g, err := chaos.NewEnsemble(t.Context(), chaos.EnsembleOptions{Binary: binary, Dir: dir}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.Members {
				t.Logf("member %s:\n%s", m.Name, m.Log())
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bootstrap []string
	for _, m := range g.Clients() {
		bootstrap = append(bootstrap, m.Kafka)
	}
	first := g.Members[0]
	return access{Kafka: strings.Join(bootstrap, ","), URL: first.URL, Token: first.Token(), Folder: dir}
}

// TestEnsemble reads many topics of three members with Java clients and with Kafka
// Streams. The origin of each record is checked, as with one server.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	need(t, "client-3.9", "client-4", "platform")
	a := startEnsemble(t)
	for _, version := range []string{"client-3.9", "client-4"} {
		t.Run(version, func(t *testing.T) {
			settings := a.settings(t, "client.properties")
			flags := []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=off"}
			out, all, err := run(t, compile(t, version, "client"), flags, nil, "Main", settings, "origins/")
			report(t, out, all, err)
		})
	}
	t.Run("Streams", func(t *testing.T) { a.join(t) })
}
