package messagingcluster_test

import (
	"strings"
	"sync"
	"testing"

	"freshet/api/v1alpha1"
	"freshet/internal/dataplane/provision"
)

// TestReplication checks that missing replicas, damage and members that cannot serve the cluster
// appear in the condition FullyReplicated, and that the last of them makes the cluster not ready.
func TestReplication(t *testing.T) {
	t.Parallel()
	copies := []provision.Copy{{Member: "a", Live: true}, {Member: "b", Live: true}, {Member: "c", Live: true}}
	w, p := startEnsemble(t, nil, []provision.Shard{{Number: 0, Owner: "a", Epoch: 1, Copies: copies}})
	c := w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
	if got := find(c, "FullyReplicated"); got.Status != v1alpha1.ConditionTrue || got.Reason != "AllReplicasCurrent" ||
		got.Message != "all 14 streams have 3 current replicas" {
		t.Errorf("FullyReplicated: got %+v, want AllReplicasCurrent", got)
	}
	missing := []string{"log of shard 0 on member b"}
	for _, tc := range []struct {
		is            provision.Replication
		reason, names string
		ready         v1alpha1.ConditionStatus
	}{
		{provision.Replication{Known: true, Missing: missing}, "ReplicasMissing", missing[0], v1alpha1.ConditionTrue},
		{
			provision.Replication{Known: true, Missing: missing, Damaged: []string{"shard 0 on member b"}},
			"FilesDamaged", "shard 0 on member b", v1alpha1.ConditionTrue,
		},
		{
			provision.Replication{Known: true, Missing: missing, Differing: []string{"shard 1 on member c"}},
			"CopiesDiffer", "shard 1 on member c", v1alpha1.ConditionTrue,
		},
		{
			provision.Replication{Known: true, Failing: []string{"b", "c"}},
			"MemberFailed", "b, c", v1alpha1.ConditionFalse,
		},
		{
			provision.Replication{Known: true, Missing: missing, NoMajority: []string{"log of shard 0"}},
			"MajorityUnavailable", "log of shard 0", v1alpha1.ConditionTrue,
		},
		{
			provision.Replication{Known: true, Streams: 1, Replicas: 3},
			"AllReplicasCurrent", "3 current replicas", v1alpha1.ConditionTrue,
		},
	} {
		p.replication.Store(&tc.is)
		w.enqueue()
		w.until(tc.reason, func(c *v1alpha1.MessagingCluster) bool {
			is := find(c, "FullyReplicated")
			return is.Reason == tc.reason && strings.Contains(is.Message, tc.names) && ready(c).Status == tc.ready
		})
	}
}

// TestSlowOpening: a cluster whose stored status says Ready is not ready while it cannot be opened.
func TestSlowOpening(t *testing.T) {
	t.Parallel()
	w, p := startEnsemble(t, nil, []provision.Shard{{Number: 0, Owner: "a", Epoch: 1}})
	w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
	p.mu.Lock() // Provision waits, as if a journal could not be read
	unlock := sync.OnceFunc(p.mu.Unlock)
	t.Cleanup(unlock)
	w.enqueue()
	w.until("not ready", func(c *v1alpha1.MessagingCluster) bool {
		return ready(c).Status == v1alpha1.ConditionFalse && ready(c).Reason == "Opening"
	})
	unlock()
	w.until("ready again", func(c *v1alpha1.MessagingCluster) bool {
		return ready(c).Status == v1alpha1.ConditionTrue
	})
}
