package ensemble_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"freshet/internal/dataplane/ensemble"
	"freshet/internal/dataplane/provision"
	membersof "freshet/internal/ensemble"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver"
)

// TestReplication checks that a cluster is described by its own streams and parts, by the meta layer
// and by the directory of all logs, and without names of files.
func TestReplication(t *testing.T) {
	t.Parallel()
	missing := []natsserver.Replica{{Server: "a", Current: true}, {Server: "b", Problem: "raft: snapshot corrupt"}}
	observed := &membersof.Observation{
		Streams: []natsserver.Stream{
			{Name: natsserver.MetaLayer, Want: 3, Problem: "it has no leader"},
			{Name: "J_u-1_catalogue", Want: 3, Replicas: missing},
			{Name: "S_u-1_12", Want: 3, Replicas: missing},
			{Name: "S_u-2_0", Want: 3, Replicas: missing, Problem: "no majority"},
		},
		Members: map[string]*membersof.Health{"b": {Parts: []integrity.Part{
			{Name: "logs", Damaged: time.Now(), File: "/data/log/1.blk"},
			{Name: "shard u-1/12", Damaged: time.Now(), Problem: "/data/000007.sst: checksum mismatch"},
			{Name: "shard u-1/13", Verified: time.Now()},
			{Name: "shard u-1/14", Differs: "copies of a and b differ"},
			{Name: "shard u-2/12", Damaged: time.Now()},
		}}},
		Failing: map[string]map[string]string{"u-1": {"c": "x", "b": "y"}, "u-2": {"a": "z"}},
	}
	want := provision.Replication{
		Known: true, Streams: 3, Replicas: 3, NoMajority: []string{"meta layer of the log"},
		Missing:   []string{"journal catalogue on member b", "log of shard 12 on member b"},
		Damaged:   []string{"logs on member b", "shard 12 on member b"},
		Differing: []string{"shard 14 on member b"},
		Failing:   []string{"b", "c"},
	}
	if diff := cmp.Diff(want, ensemble.ReplicationOf(observed, []string{"a", "b", "c"}, "u-1")); diff != "" {
		t.Errorf("replication differs (-want +got):\n%s", diff)
	}
	if got := ensemble.ReplicationOf(nil, nil, "u-1"); got.Known {
		t.Errorf("without an observation: got %+v, want nothing known", got)
	}
}
