package messagingcluster_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/dataplane/provision"
)

// fakeEnsemblePlane is a plane in an ensemble of five members.
type fakeEnsemblePlane struct {
	fakePlane
	shards atomic.Pointer[[]provision.Shard]
	known  atomic.Bool // whether Synced reports a known state

	replication atomic.Pointer[provision.Replication]
}

// Replication implements messagingcluster.Plane.
func (p *fakeEnsemblePlane) Replication(string) provision.Replication {
	if r := p.replication.Load(); r != nil {
		return *r
	}
	return provision.Replication{Known: true, Streams: 14, Replicas: 3}
}

func (p *fakeEnsemblePlane) Shards(string) []provision.Shard { return *p.shards.Load() }
func (*fakeEnsemblePlane) Membership() (all, live int)       { return 5, 4 }

func (p *fakeEnsemblePlane) Synced() (external, synced, known bool, reason, message string) {
	return true, false, p.known.Load(), "SyncNotAlways", "set sync_interval: always"
}

func startEnsemble(t *testing.T, fail error, shards []provision.Shard) (harness, *fakeEnsemblePlane) {
	t.Helper()
	s := kindstest.Start(t, kindstest.Options{})
	client, err := versioned.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	p := &fakeEnsemblePlane{fakePlane: fakePlane{fail: fail, running: map[string]provision.Spec{}}}
	p.shards.Store(&shards)
	t.Cleanup(kindstest.Run(t, client, messagingcluster.New(kindstest.Plan(), p, nil)))
	instances := client.CloudV1alpha1().MessagingInstances("acme")
	if _, err := instances.Create(t.Context(), &v1alpha1.MessagingInstance{ObjectMeta: metav1.ObjectMeta{Name: "prod"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := harness{t, &p.fakePlane, client.CloudV1alpha1().MessagingClusters("acme")}
	four := int32(4)
	_, err = w.clusters.Create(t.Context(), &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: v1alpha1.MessagingClusterSpec{
			InstanceName: "prod", Location: "local",
			Storage: &v1alpha1.Storage{Replicas: &four},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w, p
}

// enqueue makes the controller reconcile the cluster again.
func (w harness) enqueue() {
	w.Helper()
	if _, err := w.clusters.Patch(w.Context(), "east", "application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"look":%q}}}`, rand.Text()), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

func find(c *v1alpha1.MessagingCluster, condition string) v1alpha1.Condition {
	for _, each := range c.Status.Conditions {
		if each.Type == condition {
			return each
		}
	}
	return v1alpha1.Condition{}
}

func TestStatusOfShards(t *testing.T) {
	t.Parallel()
	copies := []provision.Copy{{Member: "a", Live: true}, {Member: "b", Live: true, Lag: 999}, {Member: "c", Lag: 5100}}
	w, p := startEnsemble(t, nil, []provision.Shard{
		{Number: 0, Owner: "a", Epoch: 7, Copies: append(copies, provision.Copy{Member: "d", Live: true})},
		{Number: 1, Owner: "b", Epoch: 9, Copies: copies},
	})
	c := w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
	if got := len(c.Status.Shards); got != 2 {
		t.Fatalf("got %d shards, want 2: %+v", got, c.Status)
	}
	is := c.Status.Shards[1]
	if is.Number != 1 || is.Owner != "b" || is.Epoch != 9 || len(is.Copies) != 3 {
		t.Errorf("second shard: got %+v", is)
	}
	if got := [3]int64{is.Copies[0].Lag, is.Copies[1].Lag, is.Copies[2].Lag}; got != [3]int64{0, 0, 4000} ||
		is.Copies[2].Live {
		t.Errorf("copies: got %+v, want the last one not live and 4000 behind", is.Copies)
	}
	if got := *c.Status.Storage; got.Replicas != 3 || got.ReadyReplicas != 2 {
		t.Errorf("storage: got %+v, want the copies of the shard that has the fewest", got)
	}
	if got := *c.Status.Broker; got.Replicas != 5 || got.ReadyReplicas != 4 {
		t.Errorf("broker: got %+v, want all members", got)
	}
	if got := find(c, "ShardsReady"); got.Status != v1alpha1.ConditionFalse || got.Reason != "CopiesMissing" {
		t.Errorf("ShardsReady: got %+v, want CopiesMissing", got)
	}
	if got := p.running[string(c.UID)].Copies; got != 4 {
		t.Errorf("copies requested from the plane: got %d, want 4", got)
	}

	if got := find(c, "WritesSynced"); got.Status != v1alpha1.ConditionUnknown {
		t.Errorf("WritesSynced: got %+v, want Unknown", got)
	}
	p.known.Store(true)
	all := []provision.Copy{
		{Member: "a", Live: true},
		{Member: "b", Live: true},
		{Member: "c", Live: true},
		{Member: "d", Live: true},
	}
	p.shards.Store(&[]provision.Shard{
		{Number: 0, Owner: "a", Epoch: 7, Copies: all},
		{Number: 1, Owner: "b", Epoch: 9, Copies: all},
	})
	w.enqueue()
	c = w.until("complete", func(c *v1alpha1.MessagingCluster) bool {
		return find(c, "ShardsReady").Status == v1alpha1.ConditionTrue
	})
	if got := find(c, "WritesSynced"); got.Status != v1alpha1.ConditionFalse || got.Reason != "SyncNotAlways" ||
		got.Message == "" || ready(c).Status != v1alpha1.ConditionTrue {
		t.Errorf("WritesSynced: got %+v, want False, and the cluster ready", got)
	}
	if *c.Status.Storage != (v1alpha1.ComponentStatus{Replicas: 4, ReadyReplicas: 4, UpdatedReplicas: 4}) {
		t.Errorf("storage: got %+v, want four copies", c.Status.Storage)
	}
}

func TestLostJournalIsReported(t *testing.T) {
	t.Parallel()
	lost := &provision.JournalLost{Problem: "journal schemas: stream does not exist"}
	w, _ := startEnsemble(t, errors.Join(lost, errors.New("not open")), nil)
	c := w.until("lost", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Reason == "JournalLost" })
	if got := ready(c); got.Status != v1alpha1.ConditionFalse || got.Message != lost.Problem {
		t.Errorf("condition: got %+v, want False with the problem", got)
	}
}

func TestLostLogIsReported(t *testing.T) {
	t.Parallel()
	w, p := startEnsemble(t, errors.New("no owner"), []provision.Shard{
		{Number: 3, Copies: []provision.Copy{{
			Member: "a", Live: true, Lost: true,
			Problem: "store has the log up to message 9, but the log ends at 5",
		}}},
	})
	c := w.until("lost", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Reason == "LogLost" })
	for _, condition := range []string{"Ready", "ShardsReady"} {
		got := find(c, condition)
		if got.Status != v1alpha1.ConditionFalse || got.Reason != "LogLost" ||
			!strings.Contains(got.Message, "the log ends at 5") ||
			!strings.Contains(got.Message, "freshet ensemble accept-loss acme/east 3") {
			t.Errorf("condition: got %+v, want the reason LogLost, the positions and the command", got)
		}
	}
	if got := c.Status.Shards; len(got) != 1 || got[0].Copies[0].Problem == "" {
		t.Errorf("shards: got %+v, want the problem of the copy", got)
	}
	p.shards.Store(&[]provision.Shard{{
		Number: 3, Owner: "a", Epoch: 1,
		Copies: []provision.Copy{{Member: "a", Live: true}},
	}})
	p.set(nil)
	w.enqueue()
	w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
}
