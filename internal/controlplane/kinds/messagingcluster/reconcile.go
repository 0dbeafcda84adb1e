package messagingcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/generated/clientset/versioned"
	listers "freshet/api/generated/listers/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/finalizers"
	"freshet/internal/controlplane/reconcile/owners"
	"freshet/internal/dataplane/provision"
)

// Plane runs clusters, on a single server or on the members of an ensemble.
type Plane interface {
	// Provision opens the cluster or updates an open one, and reports each part that has started.
	// It is idempotent.
	Provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error
	// Destroy closes the cluster and deletes its data; it succeeds if the cluster does not exist.
	Destroy(ctx context.Context, uid string) error
	// Shards describes the shards of a cluster; nil when it is not open or has no shards.
	Shards(uid string) []provision.Shard
	// Membership returns the number of servers that run clusters, and of those that are live.
	Membership() (all, live int)
	// Replication describes how safely the data of a cluster is stored.
	Replication(uid string) provision.Replication
	// Synced reports whether an external log syncs every write.
	Synced() (external, synced, known bool, reason, message string)
}

// Controller provisions clusters on the plane, and tears them down.
type Controller struct {
	*reconcile.Reconciler[*object]
	client    versioned.Interface
	instances listers.MessagingInstanceLister
	plan      *pools.Plan
	plane     Plane
	backoff   reconcile.Backoff
	log       *slog.Logger

	mu      sync.Mutex                        // protects the map below
	deleted map[types.NamespacedName][]string // UIDs of deleted clusters whose data may still exist
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{
		client: env.Client, plan: k.plan, plane: k.plane,
		instances: cloud.MessagingInstances().Lister(),
		log:       env.Log.With(slog.String("controller", "messagingcluster")),
		deleted:   map[types.NamespacedName][]string{},
	}
	informer := cloud.MessagingClusters().Informer()
	clustersOf, err := reconcile.Index(informer, "cluster by instance",
		func(o *object) string { return o.Spec.InstanceName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("messagingcluster", informer, env.Log, c); err != nil {
		return nil, err
	}
	if err := reconcile.Follow(informer, func(*object) {}, c.recordDeleted); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.MessagingInstances().Informer(), func(instance metav1.Object) {
		for _, cluster := range clustersOf(instance.GetNamespace(), instance.GetName()) {
			c.Enqueue(cluster)
		}
	})
}

// Reconcile implements reconcile.Handler.
func (c *Controller) Reconcile(ctx context.Context, cluster *object) (time.Duration, error) {
	// an earlier cluster of the same name
	if err := c.ReconcileDeleted(ctx, cluster.Namespace, cluster.Name); err != nil {
		return 0, err
	}
	if wait := c.backoff.Remaining(cluster.UID, attemptOf(cluster)); wait > 0 {
		return wait, nil
	}
	if reconcile.Deleting(cluster) {
		return c.finish(ctx, cluster)
	}
	instance, err := c.instances.MessagingInstances(cluster.Namespace).Get(cluster.Spec.InstanceName)
	if err != nil {
		return 0, c.notReady(ctx, cluster, reasonNoInstance,
			"instance "+cluster.Spec.InstanceName+" does not exist yet")
	}
	if owners.Add(cluster, instance, "MessagingInstance") {
		_, err := c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).Update(ctx, cluster,
			metav1.UpdateOptions{})
		return 0, err // the update queues the cluster again
	}
	return c.provision(ctx, cluster, instance)
}

// attemptOf returns a key for the backoff that differs between generations of the spec and the
// deletion.
func attemptOf(cluster *object) int64 {
	if reconcile.Deleting(cluster) {
		return -1
	}
	return cluster.Generation
}

// provision provisions the cluster and writes each step to the status.
func (c *Controller) provision(ctx context.Context, cluster *object,
	instance *v1alpha1.MessagingInstance,
) (time.Duration, error) {
	if !conditions.IsReady(cluster.Status.Conditions, cluster.Generation) {
		if err := c.announce(ctx, cluster); err != nil {
			return 0, err
		}
	}
	spec, err := c.spec(cluster, instance)
	if err == nil {
		var writeErr error
		if err, writeErr = c.open(ctx, cluster, spec); err == nil && writeErr != nil {
			return 0, writeErr
		}
	}
	if lost := c.logLost(cluster); lost != "" {
		return shardsInterval, c.notReady(ctx, cluster, reasonLogLost, lost)
	}
	if lost := (*provision.JournalLost)(nil); errors.As(err, &lost) {
		return shardsInterval, c.notReady(ctx, cluster, reasonJournalLost, lost.Problem)
	}
	if err != nil {
		return c.failed(ctx, cluster, reasonFailed, err)
	}
	c.backoff.Forget(cluster.UID)
	if failing := c.plane.Replication(string(cluster.UID)).Failing; len(failing) > 0 {
		return shardsInterval, c.notReady(ctx, cluster, reasonMembers, failingMessage(failing))
	}
	return c.refreshInterval(cluster), c.write(ctx, cluster, c.describe(cluster, instance))
}

// openTimeout is how long a cluster that was ready may take to be opened, or wait for owners of its
// shards, before its status says that it is not ready. Another member takes over the shards of a lost
// member in less time.
const openTimeout = 10 * time.Second

// open provisions the cluster and writes each part that has started to the status. The stored
// status can be that of an earlier run of the server, so a cluster that is not open in time is
// not ready, whatever the status says.
func (c *Controller) open(ctx context.Context, cluster *object, spec provision.Spec) (err, writeErr error) {
	parts, ended := make(chan provision.Part), make(chan error, 1)
	go func() {
		ended <- c.plane.Provision(ctx, spec, func(part provision.Part) {
			select {
			case parts <- part:
			case <-ctx.Done():
			}
		})
	}()
	slow := time.NewTicker(openTimeout)
	defer slow.Stop()
	for {
		isReady := conditions.IsReady(cluster.Status.Conditions, cluster.Generation)
		select {
		case part := <-parts:
			if writeErr == nil && !isReady {
				writeErr = c.progress(ctx, cluster, part)
			}
		case <-slow.C:
			if isReady {
				c.reportSlow(ctx, cluster)
			}
		case err = <-ended:
			return err, writeErr
		}
	}
}

// reportSlow writes that a cluster is not ready although its status says so. The object can have
// changed since this attempt began, so reportSlow writes to the latest one. The attempt keeps its own,
// because it applies the spec of that one; writing it fails then, and the next attempt follows.
func (c *Controller) reportSlow(ctx context.Context, cluster *object) {
	latest, err := c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).Get(ctx, cluster.Name,
		metav1.GetOptions{})
	if err == nil && latest.UID == cluster.UID && conditions.IsReady(latest.Status.Conditions, latest.Generation) {
		err = c.notReady(ctx, latest, reasonOpening,
			"the cluster is being opened, or its shards have no owners; see freshet ensemble status")
	}
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "writing that a cluster is not open yet failed; retrying",
			slog.String("cluster", cluster.Namespace+"/"+cluster.Name), slog.Any("error", err))
	}
}

// failed writes the error and the time of the next attempt to the status.
func (c *Controller) failed(ctx context.Context, cluster *object, reason string, cause error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	failures, delay := c.backoff.Failed(cluster.UID, attemptOf(cluster))
	c.log.WarnContext(ctx, "reconciling a cluster failed; retrying",
		slog.String("cluster", cluster.Namespace+"/"+cluster.Name),
		slog.String("reason", reason), slog.Any("error", cause), slog.Int("failures", failures),
		slog.Duration("delay", delay))
	return delay, c.notReady(ctx, cluster, reason,
		fmt.Sprintf("%v (failed %d times, next attempt in %s)", cause, failures, delay))
}

var errNoMember = errors.New(
	"pool member is no longer in the server's configuration; add it to pools again, or delete the cluster")

func (c *Controller) spec(cluster *object, instance *v1alpha1.MessagingInstance) (provision.Spec, error) {
	_, member, ok := c.plan.Member(cluster.Spec.PoolMemberRef)
	if !ok {
		return provision.Spec{}, errNoMember
	}
	return provision.Spec{
		UID: string(cluster.UID), Organization: cluster.Namespace, Instance: instance.Name,
		Name: cluster.Name, Host: hostOf(cluster), Engine: member.Engine, Location: member.Location,
		RegistryAtRoot: registryAtRoot(instance),
		Existing:       cluster.Status.Storage != nil, Stream: servesKafka(cluster), Copies: copiesOf(cluster),
		Custom: knownCustom(cluster), StoredBytes: storedBytesOf(cluster), MemoryBytes: memoryOf(cluster, instance),
	}, nil
}

// finish tears down the data plane and then removes the finalizer.
func (c *Controller) finish(ctx context.Context, cluster *object) (time.Duration, error) {
	if !finalizers.Has(cluster, Finalizer) {
		status := *cluster.Status.DeepCopy()
		status.Conditions, _ = conditions.Deleting(status.Conditions, conditions.MessageDeleting, cluster.Generation)
		return 0, c.write(ctx, cluster, status)
	}
	if ready, ok := conditions.Find(cluster.Status.Conditions, v1alpha1.ConditionReady); !ok ||
		ready.Reason != conditions.ReasonDeleting {
		if err := c.notReady(ctx, cluster, conditions.ReasonDeleting, "the data plane is being torn down"); err != nil {
			return 0, err
		}
	}
	if err := c.plane.Destroy(ctx, string(cluster.UID)); err != nil {
		return c.failed(ctx, cluster, conditions.ReasonDeleting, fmt.Errorf("tearing down the data plane: %w", err))
	}
	c.backoff.Forget(cluster.UID)
	return 0, finalizers.Remove(ctx, cluster, Finalizer,
		c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).Patch)
}

// recordDeleted records a deleted cluster. Usually its data plane is torn down, but not if the finalizer
// was removed by hand.
func (c *Controller) recordDeleted(cluster *object) {
	at := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	c.mu.Lock()
	c.deleted[at] = append(c.deleted[at], string(cluster.UID))
	c.mu.Unlock()
	c.backoff.Forget(cluster.UID)
	c.EnqueueName(cluster.Namespace, cluster.Name)
}

// ReconcileDeleted implements reconcile.DeletionHandler. It destroys the data planes of deleted clusters.
func (c *Controller) ReconcileDeleted(ctx context.Context, namespace, name string) error {
	at := types.NamespacedName{Namespace: namespace, Name: name}
	c.mu.Lock()
	uids := c.deleted[at]
	delete(c.deleted, at)
	c.mu.Unlock()
	for i, uid := range uids {
		if err := c.plane.Destroy(ctx, uid); err != nil {
			c.mu.Lock()
			c.deleted[at] = append(c.deleted[at], uids[i:]...)
			c.mu.Unlock()
			return fmt.Errorf("destroying the data of deleted cluster %s: %w", at, err)
		}
	}
	return nil
}
