package messagingcluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/dataplane/provision"
)

// fakePlane is the data plane of a single server. It fails on demand.
type fakePlane struct {
	mu        sync.Mutex
	fail      error
	attempts  int
	running   map[string]provision.Spec
	destroyed []string
}

func (p *fakePlane) Provision(_ context.Context, spec provision.Spec, report func(provision.Part)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts++
	if p.fail != nil {
		return p.fail
	}
	if _, ok := p.running[spec.UID]; !ok {
		for _, part := range []provision.Part{
			provision.Storage, provision.Metadata, provision.Broker,
			provision.Proxy,
		} {
			report(part)
		}
	}
	p.running[spec.UID] = spec
	return nil
}

func (p *fakePlane) Destroy(_ context.Context, uid string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts++
	if p.fail != nil {
		return p.fail
	}
	delete(p.running, uid)
	p.destroyed = append(p.destroyed, uid)
	return nil
}

// Shards implements messagingcluster.Plane.
func (*fakePlane) Shards(string) []provision.Shard { return nil }

// Membership implements messagingcluster.Plane.
func (*fakePlane) Membership() (all, live int) { return 1, 1 }

// Replication implements messagingcluster.Plane.
func (*fakePlane) Replication(string) provision.Replication { return provision.Replication{} }

// Synced implements messagingcluster.Plane.
func (*fakePlane) Synced() (external, synced, known bool, reason, message string) {
	return false, true, true, "", ""
}

func (p *fakePlane) set(fail error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail, p.attempts = fail, 0
}

// harness is a resource API with the controller running on a plane.
type harness struct {
	*testing.T
	plane    *fakePlane
	clusters typed.MessagingClusterInterface
}

func start(t *testing.T, fail error) harness {
	t.Helper()
	s := kindstest.Start(t, kindstest.Options{})
	client, err := versioned.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	p := &fakePlane{fail: fail, running: map[string]provision.Spec{}}
	t.Cleanup(kindstest.Run(t, client, messagingcluster.New(kindstest.Plan(), p, nil)))
	_, err = client.CloudV1alpha1().MessagingInstances("acme").Create(t.Context(),
		&v1alpha1.MessagingInstance{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := harness{t, p, client.CloudV1alpha1().MessagingClusters("acme")}
	_, err = w.clusters.Create(t.Context(), &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec:       v1alpha1.MessagingClusterSpec{InstanceName: "prod", Location: "local"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// until watches the cluster until good returns true.
func (w harness) until(what string, good func(*v1alpha1.MessagingCluster) bool) *v1alpha1.MessagingCluster {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	watch, err := w.clusters.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	defer watch.Stop()
	var last *v1alpha1.MessagingCluster
	for event := range watch.ResultChan() {
		if c, ok := event.Object.(*v1alpha1.MessagingCluster); ok {
			if last = c; good(c) {
				return c
			}
		}
	}
	w.Fatalf("timed out waiting for the cluster to be %s: %+v", what, last)
	return nil
}

func ready(c *v1alpha1.MessagingCluster) v1alpha1.Condition {
	if n := len(c.Status.Conditions); n > 0 {
		return c.Status.Conditions[n-1]
	}
	return v1alpha1.Condition{}
}

func TestFailuresAreReportedAndRetried(t *testing.T) {
	t.Parallel()
	w := start(t, errors.New("the disk is full"))
	c := w.until("failed twice",
		func(c *v1alpha1.MessagingCluster) bool { return strings.Contains(ready(c).Message, "failed 2 times") })
	r := ready(c)
	if r.Type != "Ready" || r.Reason != "ProvisioningFailed" || r.Status != v1alpha1.ConditionFalse ||
		!strings.Contains(r.Message, "the disk is full") || !strings.Contains(r.Message, "next attempt in") {
		t.Errorf("condition Ready: got %+v, want ProvisioningFailed with the cause and the delay", r)
	}
	if len(c.Status.Conditions) != 5 || c.Status.Conditions[0].Type != "MetadataReady" ||
		c.Status.ObservedGeneration != 0 {
		t.Errorf("status: got %+v, want five conditions and no observed generation", c.Status)
	}
	w.plane.mu.Lock()
	tries := w.plane.attempts
	w.plane.mu.Unlock()
	// Writing the failure queues the cluster again, which must not cause an immediate attempt.
	if tries > 3 {
		t.Errorf("got %d attempts for 2 failures, want at most 3", tries)
	}
	w.plane.set(nil)
	c = w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
	if c.Status.ObservedGeneration != c.Generation || ready(c).Reason != "AllConditionStatusTrue" {
		t.Errorf("recovered cluster: got status %+v, want it ready", c.Status)
	}
	if e := c.Status.Endpoints; len(e) == 0 || e[0].URL != "http://east.acme.freshet.localhost:8080" ||
		e[0].PathURL != "http://127.0.0.1:8080/clusters/acme/east" {
		t.Errorf("endpoints: got %+v, want those of the server's base URL", e)
	}
}

// TestNewSpecIsAppliedImmediately checks that the failures of an earlier spec do not delay a new one: its attempts
// count from one. Backoff makes the first attempt of a generation immediately.
func TestNewSpecIsAppliedImmediately(t *testing.T) {
	t.Parallel()
	w := start(t, errors.New("no"))
	c := w.until("failed often",
		func(c *v1alpha1.MessagingCluster) bool { return strings.Contains(ready(c).Message, "failed 3 times") })
	before := c.Generation
	c.Spec.DisplayName = "again"
	if _, err := w.clusters.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("failed with the new spec", func(c *v1alpha1.MessagingCluster) bool {
		if message := ready(c).Message; c.Generation > before && strings.Contains(message, "failed 4 times") {
			t.Errorf("new spec: got %q, want its failures counted from one", message)
		}
		return c.Generation > before && strings.Contains(ready(c).Message, "failed 1 times")
	})
	w.plane.set(nil)
	w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
}

func TestTeardownThatFails(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
	w.plane.set(errors.New("the disk is stuck"))
	if err := w.clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c := w.until("stuck", func(c *v1alpha1.MessagingCluster) bool {
		// An attempt before the deletion is seen may fail as well, with another reason.
		return ready(c).Reason == "Deleting" && strings.Contains(ready(c).Message, "the disk is stuck")
	})
	if c.DeletionTimestamp == nil || len(c.Finalizers) != 1 {
		t.Errorf("cluster whose teardown fails: got %+v, want a deletion timestamp and the finalizer", c)
	}
	w.plane.set(nil)
	w.untilDeleted()
	if len(w.plane.destroyed) == 0 || w.plane.destroyed[0] != string(c.UID) || len(w.plane.running) != 0 {
		t.Errorf("plane: got %+v, want the cluster destroyed", w.plane)
	}
}

func (w harness) untilDeleted() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := w.clusters.Get(ctx, "east", metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatal("timed out waiting for the deletion of the cluster")
		}
	}
}

func TestDataOfClustersDeletedByForceIsRemovedToo(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	c := w.until("ready", func(c *v1alpha1.MessagingCluster) bool { return ready(c).Status == v1alpha1.ConditionTrue })
	// A user deletes the cluster and removes our finalizer immediately, while the teardown fails.
	w.plane.set(errors.New("not now"))
	if err := w.clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.clusters.Patch(t.Context(), "east", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.untilDeleted()
	w.plane.set(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		w.plane.mu.Lock()
		_, runs := w.plane.running[string(c.UID)]
		w.plane.mu.Unlock()
		if !runs {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("data plane of a deleted cluster still runs")
		}
	}
}
