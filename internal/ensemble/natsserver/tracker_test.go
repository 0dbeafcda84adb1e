package natsserver_test

import (
	"testing"
	"time"

	"freshet/internal/ensemble/natsserver"
)

// TestTracker checks which replicas count as missing, and from when on.
func TestTracker(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	tracker := func(servers ...string) *natsserver.Tracker {
		return &natsserver.Tracker{
			Servers: servers, Grace: natsserver.ReplicaGrace, Now: func() time.Time { return now },
		}
	}
	// leads returns the report of a leader about its peers.
	leads := func(peers ...natsserver.Peer) *natsserver.Report {
		return &natsserver.Report{
			Streams: []natsserver.LocalStream{{Name: "S_c_0", Want: 3, Leader: "a", Peers: peers}},
		}
	}
	follows := func(problem string) *natsserver.Report {
		return &natsserver.Report{
			Streams: []natsserver.LocalStream{{Name: "S_c_0", Want: 3, Leader: "a", Problem: problem}},
		}
	}
	b, c := natsserver.Peer{Server: "b", Current: true}, natsserver.Peer{Server: "c", Current: true}
	for _, tc := range []struct {
		name    string
		reports map[string]*natsserver.Report
		down    map[string]bool
		// missing are the replicas that count as missing at once, late those after the grace time.
		missing, late []string
		stuck         bool // whether the stream has a problem after the grace time
	}{
		{name: "good", reports: map[string]*natsserver.Report{"a": leads(b, c), "b": follows(""), "c": follows("")}},
		{
			name:    "not live",
			reports: map[string]*natsserver.Report{"a": leads(b, c), "b": follows("")},
			down:    map[string]bool{"c": true}, missing: []string{"c"}, late: []string{"c"},
		},
		{
			name:    "no response",
			reports: map[string]*natsserver.Report{"a": leads(b, c), "b": follows("")}, late: []string{"c"},
		},
		{
			name: "offline",
			reports: map[string]*natsserver.Report{
				"a": leads(b, natsserver.Peer{Server: "c", Offline: true}), "b": follows(""), "c": follows(""),
			},
			late: []string{"c"},
		},
		{
			name: "behind",
			reports: map[string]*natsserver.Report{
				"a": leads(b, natsserver.Peer{Server: "c", Lag: 9}), "b": follows(""), "c": follows(""),
			},
			late: []string{"c"},
		},
		{
			name:    "does not know its replica",
			reports: map[string]*natsserver.Report{"a": leads(b, c), "b": follows(""), "c": {}}, late: []string{"c"},
		},
		{
			name:    "reports a problem",
			reports: map[string]*natsserver.Report{"a": leads(b, c), "b": follows("corrupt"), "c": follows("")},
			late:    []string{"b"},
		},
		{
			name:    "not in the group of the leader",
			reports: map[string]*natsserver.Report{"a": leads(b), "b": follows(""), "c": follows("")},
			late:    []string{"c"},
		},
		{
			name:    "leader does not respond",
			reports: map[string]*natsserver.Report{"b": follows(""), "c": follows("")}, late: []string{"a", "b", "c"},
		},
		{
			name:    "no majority",
			reports: map[string]*natsserver.Report{"a": leads()}, down: map[string]bool{"b": true, "c": true},
			missing: []string{"b", "c"}, late: []string{"b", "c"}, stuck: true,
		},
	} {
		tr := tracker("a", "b", "c")
		for _, step := range []struct {
			after time.Duration
			want  []string
			stuck bool
		}{{0, tc.missing, false}, {natsserver.ReplicaGrace, tc.late, tc.stuck}} {
			now = now.Add(step.after)
			streams := tr.Combine(tc.reports, tc.down)
			if len(streams) != 1 || len(streams[0].Replicas) != 3 || streams[0].Want != 3 {
				t.Fatalf("%s: got %+v, want one stream with three replicas", tc.name, streams)
			}
			got := map[string]bool{}
			for _, r := range streams[0].Missing() {
				got[r.Server] = true
			}
			same := len(got) == len(step.want)
			for _, server := range step.want {
				same = same && got[server]
			}
			if !same || (streams[0].Problem != "") != step.stuck {
				t.Errorf("%s after %s: got missing %v and problem %q, want missing %v and a problem: %t", tc.name,
					step.after, got, streams[0].Problem, step.want, step.stuck)
			}
		}
	}
	// External servers: one report for all, which names the servers.
	report := leads(b, natsserver.Peer{Server: "c", Offline: true})
	external := tracker().Combine(map[string]*natsserver.Report{"": report}, nil)
	if got := external[0]; len(got.Replicas) != 3 || len(got.Missing()) != 1 || got.Missing()[0].Server != "c" {
		t.Errorf("external servers: got %+v, want the replica of c missing", got)
	}
}

func TestParseStream(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"S_0b1c-2d_7":          {"0b1c-2d", "log of shard 7"},
		"S_0b1c-2d_7-1a2b3c4d": {"0b1c-2d", "log of shard 7"},
		"J_0b1c-2d":            {"0b1c-2d", "snapshots of the journals"},
		"J_0b1c-2d_groups1":    {"0b1c-2d", "journal groups1"},
		"S_7":                  {},
		"KV_x":                 {},
	} {
		cluster, part, ok := natsserver.ParseStream(name)
		if cluster != want[0] || part != want[1] || ok != (want[1] != "") {
			t.Errorf("%s: got %q, %q and %t, want %q", name, cluster, part, ok, want)
		}
	}
}
