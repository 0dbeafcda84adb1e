package natsserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver"
	"freshet/internal/ensemble/natsserver/natstest"
)

// observer combines the reports of a cluster's running servers.
type observer struct {
	*testing.T
	c       *natstest.Cluster
	tracker natsserver.Tracker
	now     time.Time
}

func newObserver(t *testing.T, c *natstest.Cluster) *observer {
	t.Helper()
	o := &observer{T: t, c: c, now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	o.tracker = natsserver.Tracker{Grace: natsserver.ReplicaGrace, Now: func() time.Time { return o.now }}
	for i := range c.Size() {
		o.tracker.Servers = append(o.tracker.Servers, fmt.Sprintf("n%d", i))
	}
	return o
}

// combine returns the streams by name.
func (o *observer) combine() map[string]natsserver.Stream {
	o.Helper()
	reports, down := map[string]*natsserver.Report{}, map[string]bool{}
	for i, name := range o.tracker.Servers {
		s := o.c.Server(i)
		if down[name] = s == nil; s != nil {
			report, err := s.Report(o.Context())
			if err != nil {
				o.Fatal(err)
			}
			reports[name] = report
		}
	}
	byName := map[string]natsserver.Stream{}
	for _, s := range o.tracker.Combine(reports, down) {
		byName[s.Name] = s
	}
	return byName
}

// until combines reports until the streams are as wanted.
func (o *observer) until(ctx context.Context, what string, is func(map[string]natsserver.Stream) bool) {
	o.Helper()
	for {
		got := o.combine()
		if is(got) {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond): // the servers need the processor
		case <-ctx.Done():
			o.Fatalf("got %+v, want %s", got, what)
		}
	}
}

// isGood reports whether a stream has a leader and as many current replicas as there are servers.
func (o *observer) isGood(s natsserver.Stream) bool {
	good := 0
	for _, r := range s.Replicas {
		if r.Current && r.Problem == "" && r.Since.IsZero() {
			good++
		}
	}
	return good == o.c.Size() && s.Want == good && s.Leader != "" && s.Problem == ""
}

func (o *observer) allGood(ctx context.Context) {
	o.Helper()
	o.until(ctx, "all replicas current", func(all map[string]natsserver.Stream) bool {
		return o.isGood(all[natsserver.MetaLayer]) && o.isGood(all["S_c_0"])
	})
}

// missingOn returns the problem of a server's replica; "" if it does not count as missing.
func missingOn(s natsserver.Stream, server string) string {
	for _, r := range s.Missing() {
		if r.Server == server {
			return r.Problem
		}
	}
	return ""
}

// logStream creates the log of a shard with three replicas and some messages.
func logStream(ctx context.Context, t *testing.T, c *natstest.Cluster) jetstream.JetStream {
	t.Helper()
	js := open(t, c, 0)
	c.CreateStream(ctx, js, jetstream.StreamConfig{Name: "S_c_0", Subjects: []string{"s"}, Replicas: c.Size()})
	publish(ctx, t, js, 100)
	return js
}

func publish(ctx context.Context, t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	for range n {
		if _, err := js.Publish(ctx, "s", make([]byte, 100), jetstream.WithRetryAttempts(1000),
			jetstream.WithRetryWait(100*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplicas: the combined report has every replica of a stream and of the meta layer, and names
// the server that is stopped at once.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := natstest.New(t, 3, natstest.Unsafe)
	ctx := withTimeout(t, 3*time.Minute)
	logStream(ctx, t, c)
	o := newObserver(t, c)
	o.allGood(ctx)
	c.Stop(1)
	o.until(ctx, "the replicas of n1 missing", func(all map[string]natsserver.Stream) bool {
		s := all["S_c_0"]
		return missingOn(s, "n1") != "" && missingOn(all[natsserver.MetaLayer], "n1") != "" &&
			len(s.Missing()) == 1 && s.Problem == "" && s.Leader != ""
	})
	c.Start(1)
	c.Ready()
	o.allGood(ctx)
}

// TestNoMajority: with two of three servers stopped, the stream and the meta layer have a problem
// after the grace time.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	c := natstest.New(t, 3, natstest.Unsafe)
	ctx := withTimeout(t, 3*time.Minute)
	logStream(ctx, t, c)
	o := newObserver(t, c)
	o.allGood(ctx)
	c.Stop(1)
	c.Stop(2)
	o.until(ctx, "no majority", func(all map[string]natsserver.Stream) bool {
		o.now = o.now.Add(natsserver.ReplicaGrace)
		return all["S_c_0"].Problem != "" && all[natsserver.MetaLayer].Problem != "" &&
			missingOn(all["S_c_0"], "n2") != ""
	})
}

// TestReplicaWithDamagedSnapshot: a server whose Raft snapshot of a stream is damaged runs without
// its replica of that stream. The report names it; all other replicas stay good.
func TestReplicaWithDamagedSnapshot(t *testing.T) {
	t.Parallel()
	c := natstest.New(t, 3, natstest.Unsafe, natstest.Unverified)
	ctx := withTimeout(t, 4*time.Minute)
	js := logStream(ctx, t, c)
	o := newObserver(t, c)
	o.allGood(ctx)
	group := raftGroup(ctx, t, js)
	c.Stop(1) // a stopping server writes a snapshot
	snapshots, err := filepath.Glob(filepath.Join(c.Dir(1), "jetstream", "$SYS", "_js_", group, "snapshots", "*"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("got snapshots %v and error %v, want one", snapshots, err)
	}
	for _, file := range snapshots {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Start(1)
	o.until(ctx, "the replica of n1 missing", func(all map[string]natsserver.Stream) bool {
		o.now = o.now.Add(time.Second)
		s := all["S_c_0"]
		return missingOn(s, "n1") != "" && !strings.Contains(missingOn(s, "n1"), "down") && len(s.Missing()) == 1 &&
			o.isGood(all[natsserver.MetaLayer])
	})
	t.Log(missingOn(o.combine()["S_c_0"], "n1"))
}

// raftGroup returns the name of the Raft group of the stream.
func raftGroup(ctx context.Context, t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	s, err := js.Stream(ctx, "S_c_0")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return info.Cluster.RaftGroup
}

// TestReplicasOfExternalServers: the report of external servers has Freshet's streams only.
func TestReplicasOfExternalServers(t *testing.T) {
	t.Parallel()
	r, err := natsserver.Dial(external(t, func(*server.Options) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	conn, err := r.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx := withTimeout(t, time.Minute)
	for _, name := range []string{"S_c_0", "J_c", "other"} {
		if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
			t.Fatal(err)
		}
	}
	report, err := r.Report(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tracker := natsserver.Tracker{Grace: 0, Now: time.Now}
	streams := tracker.Combine(map[string]*natsserver.Report{"": report}, nil)
	if len(streams) != 2 || streams[0].Name != "J_c" || streams[1].Name != "S_c_0" {
		t.Fatalf("got %+v, want the two streams of Freshet", streams)
	}
	for _, s := range streams {
		if len(s.Replicas) != 1 || len(s.Missing()) != 0 || s.Problem != "" {
			t.Errorf("got %+v, want one good replica", s)
		}
	}
}
