// Package migrate_test moves the data of a single server into an ensemble and back, with
// the real binary. The ids, offsets, credentials and positions that clients got before must
// be valid afterwards (docs/spec/ensemble.md).
package migrate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/ensemble/chaos"
	"freshet/test/tally"
	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// freshet runs a command and returns its output.
func freshet(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// startSingle starts a single server.
func startSingle(t *testing.T, dir, data string) (*testserver.Server, serverAddress) {
	t.Helper()
	s, err := testserver.Start(t.Context(), binary, dir, testserver.Options{Kafka: true, DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s, serverAddress{s.URL, s.Kafka}
}

// filled returns the data directory of a stopped server that contains every kind of data.
func filled(t *testing.T, dir string) (*expectations, string) {
	t.Helper()
	data := filepath.Join(dir, "old")
	s, at := startSingle(t, dir, data)
	w := &expectations{t: t, admin: s.Token, clientID: s.ClientID, clientSecret: s.ClientSecret}
	w.fill(at)
	if out, err := freshet(t, dir, "migrate", "--from", data, "--config", os.DevNull); err == nil ||
		!strings.Contains(out, "in use by another freshet process") {
		t.Errorf("migrating a running server: got %v %s", err, out)
	}
	if err := s.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	return w, data
}

// sums returns the checksums of all files except lock files.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// migrated runs the command, and kills it repeatedly, each time a little later, until it
// completes.
func migrated(t *testing.T, dir, from, config string) (out string, kills int) {
	t.Helper()
	for after := 40 * time.Millisecond; ; after += after / 2 {
		var text strings.Builder
		cmd := exec.Command(binary, "migrate", "--from", from, "--config", config)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		cmd.Stdout, cmd.Stderr = &text, &text
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return text.String(), kills
		case errors.As(err, &exit) && exit.ExitCode() == -1:
			kills++
		default:
			t.Fatalf("migrate: %v\n%s", err, text.String())
		}
	}
}

// TestFaultMigrate moves the data of a server into the directory of an ensemble's first
// member while the command is killed repeatedly, and checks which migrations are refused.
func TestFaultMigrate(t *testing.T) {
	dir := t.TempDir()
	w, old := filled(t, dir)
	before := sums(t, old)
	g, err := chaos.NewEnsemble(t.Context(), chaos.EnsembleOptions{Binary: binary, Dir: dir, From: old}, 1)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := freshet(t, dir, args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("freshet %s: got %v %s, want an error with %q", strings.Join(args, " "), err, out, want)
		}
	}
	config := func(name string) string { return filepath.Join(dir, name+".yaml") }
	refused("has to start with the data of another server", "serve", "--config", config("a"))
	refused("freshet ensemble init --from", "migrate", "--from", old, "--config", config("b"))
	refused("of a member of an ensemble", "migrate", "--from", filepath.Join(dir, "b"), "--config", config("a"))
	refused("not a data directory", "migrate", "--from", filepath.Join(dir, "nothing"), "--config", config("a"))
	refused("pass another one with --to", "migrate", "--from", old, "--to", old, "--config", config("a"))
	other := filepath.Join(dir, "other")
	if err := os.CopyFS(other, os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "admin.token"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("the bundle is of another ensemble", "migrate", "--from", other, "--config", config("a"))

	fault := tally.Fault{Name: "migration killed"}
	out, kills := migrated(t, dir, old, config("a"))
	fault.Injected = kills
	if kills < 2 {
		t.Errorf("the command was killed %d times, want at least 2", kills)
	}
	for _, want := range []string{"default/default   shard 5", "All data was copied and verified", "messaging"} {
		fault.Checked++
		if !strings.Contains(out, want) && !strings.Contains(out, "Nothing to do") {
			t.Errorf("got %s, want %q", out, want)
		}
	}
	if after := sums(t, old); !maps.Equal(before, after) {
		fault.Wrong++
		t.Error("the old data directory was changed")
	}
	if again, err := freshet(t, dir, "migrate", "--from", old, "--config", config("a")); err != nil ||
		!strings.Contains(again, "Nothing to do") {
		t.Errorf("migrating again: got %v %s", err, again)
	}
	if err := os.WriteFile(filepath.Join(other, "admin.token"), []byte(w.admin), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("use an empty data directory", "migrate", "--from", other, "--config", config("a"))
	for path := range sums(t, filepath.Join(dir, "a")) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v %v, want 0600", path, info.Mode(), err)
		}
	}
	if out, err := freshet(t, dir, "check", filepath.Join(dir, "a")); err != nil || strings.Count(out, "shard-") != 6 {
		t.Errorf("check of the member's data directory: got %v %s", err, out)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	fault.Record(t)
}

// TestEnsemble moves a server into an ensemble of three members and back: credentials, ids,
// positions of subscriptions and of consumer groups, and schemas stay the same.
func TestEnsemble(t *testing.T) {
	if os.Getenv("FRESHET_TEST_CLUSTER") == "" {
		t.Skip("NOT TESTED: a server moved into an ensemble of three processes; make test-ensemble runs it")
	}
	dir := t.TempDir()
	w, old := filled(t, dir)
	g, err := chaos.NewEnsemble(t.Context(), chaos.EnsembleOptions{Binary: binary, Dir: dir, From: old}, 1)
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
	migrated(t, dir, old, filepath.Join(dir, "a.yaml"))
	began := time.Now()
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the ensemble serves %s after its first start", time.Since(began).Round(time.Second))
	for i, m := range g.Members {
		w.check(serverAddress{m.URL, m.Kafka}, 2)
		text, err := os.ReadFile(m.LogFile())
		if got := strings.Contains(string(text), "is new to its ensemble; joining its etcd"); err != nil ||
			got != (i > 0) {
			t.Errorf("member %s logs that it joins: got %v %v, want %v", m.Name, got, err, i > 0)
		}
	}
	// The first member, which had all data, is lost; the others continue to serve.
	g.Members[0].Kill()
	b := g.Members[1]
	w.awaitCheck(serverAddress{b.URL, b.Kafka})
	if err := g.Members[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	if out, err := freshet(t, dir, "backup", "--data-dir", filepath.Join(dir, "b"),
		filepath.Join(dir, "backups")); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	for _, m := range g.Members {
		if err := m.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	back := filepath.Join(dir, "back")
	out, err := freshet(t, dir, "restore", filepath.Join(dir, "backups"), "--data-dir", back)
	if err != nil || !strings.Contains(out, "cluster default/default (1 of 1): merging 6 shards into one "+
		"store\ncluster default/default (1 of 1): comparing\n") {
		t.Fatalf("restore: got %v, want progress lines\n%s", err, out)
	}
	s, at := startSingle(t, dir, back)
	w.clientID, w.clientSecret = s.ClientID, s.ClientSecret
	w.check(at, 2)
	for topic, left := range w.undelivered {
		w.consume(w.client(at), topic, len(left))
	}
}

// awaitCheck waits until the shards of a lost member have new owners, and then checks.
func (w *expectations) awaitCheck(at serverAddress) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	c := w.client(at)
	for topic := range w.undelivered {
		for {
			_, err := c.Topic(topic).Subscription(subscription).Stats(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.t.Logf("another member serves every topic %s after the loss of the first",
		time.Since(began).Round(100*time.Millisecond))
	w.check(at, 2)
}
