// Package cluster makes messaging clusters real: it asks the data plane for one
// store and one set of surfaces per cluster, says in status what really runs
// (status.go), and takes everything down before the cluster goes.
//
// What a running cluster is lies behind Plane; engines are not known here.
package cluster

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
	"freshet/api/generated/informers/externalversions"
	listers "freshet/api/generated/listers/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/controllers/finalizers"
	"freshet/internal/controllers/loop"
	"freshet/internal/dataplane/provision"
	"freshet/internal/resources/placement"
	kind "freshet/internal/resources/registry/messagingcluster"
)

// Plane runs clusters.
type Plane interface {
	// Provision opens the cluster, or brings an open one up to date, and reports
	// each part that has come up. Calling it again with the same spec changes
	// nothing.
	Provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error
	// Destroy closes the cluster and removes its data; one that is not there is fine.
	Destroy(ctx context.Context, uid string) error
}

// Controller looks after clusters.
type Controller struct {
	*loop.Reconciler[*v1alpha1.MessagingCluster]
	client    versioned.Interface
	instances listers.MessagingInstanceLister
	clusters  loop.Lookup[*v1alpha1.MessagingCluster] // by instance
	plan      *placement.Plan
	plane     Plane
	backoff   loop.Backoff
	log       *slog.Logger

	mu   sync.Mutex
	gone map[types.NamespacedName][]string // UIDs of clusters that are no more
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, plan *placement.Plan, plane Plane, log *slog.Logger) (*Controller, error) {
	cloud := informers.Cloud().V1alpha1()
	c := &Controller{
		client: client, plan: plan, plane: plane,
		instances: cloud.MessagingInstances().Lister(),
		log:       log.With(slog.String("controller", "cluster")),
		gone:      map[types.NamespacedName][]string{},
	}
	informer := cloud.MessagingClusters().Informer()
	var err error
	c.clusters, err = loop.Index(informer, "cluster by instance", func(o *v1alpha1.MessagingCluster) string { return o.Spec.InstanceName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = loop.New("cluster", informer, log, c.reconcile); err != nil {
		return nil, err
	}
	c.Gone = c.bury
	if err := loop.Follow(informer, func(*v1alpha1.MessagingCluster) {}, c.mourn); err != nil {
		return nil, err
	}
	return c, loop.Watch(cloud.MessagingInstances().Informer(), c.wakeClustersOf)
}

func (c *Controller) wakeClustersOf(instance metav1.Object) {
	for _, cluster := range c.clusters(instance.GetNamespace(), instance.GetName()) {
		c.Wake(cluster)
	}
}

func (c *Controller) reconcile(ctx context.Context, cluster *v1alpha1.MessagingCluster) (time.Duration, error) {
	if err := c.bury(ctx, cluster.Namespace, cluster.Name); err != nil { // an older one of the name
		return 0, err
	}
	if wait := c.backoff.Wait(cluster.UID, attemptOf(cluster)); wait > 0 {
		return wait, nil
	}
	if loop.Deleting(cluster) {
		return c.finish(ctx, cluster)
	}
	instance, err := c.instances.MessagingInstances(cluster.Namespace).Get(cluster.Spec.InstanceName)
	if err != nil {
		return 0, c.notReady(ctx, cluster, reasonNoInstance, "instance "+cluster.Spec.InstanceName+" does not exist yet")
	}
	if !owns(cluster, instance) {
		own(cluster, instance)
		_, err := c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).Update(ctx, cluster, metav1.UpdateOptions{})
		return 0, err // the change brings the cluster back here
	}
	return c.provision(ctx, cluster, instance)
}

// attemptOf tells tries at different things apart: the spec's generations, and
// the end.
func attemptOf(cluster *v1alpha1.MessagingCluster) int64 {
	if loop.Deleting(cluster) {
		return -1
	}
	return cluster.Generation
}

// provision brings up what the spec asks for and says so, step by step.
func (c *Controller) provision(ctx context.Context, cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance) (time.Duration, error) {
	if !conditions.IsReady(cluster.Status.Conditions, cluster.Generation) {
		if err := c.announce(ctx, cluster); err != nil {
			return 0, err
		}
	}
	spec, err := c.spec(cluster, instance)
	if err == nil {
		var unwritten error
		err = c.plane.Provision(ctx, spec, func(part provision.Part) {
			if unwritten == nil && !conditions.IsReady(cluster.Status.Conditions, cluster.Generation) {
				unwritten = c.progress(ctx, cluster, part)
			}
		})
		if err == nil && unwritten != nil {
			return 0, unwritten
		}
	}
	if err != nil {
		return c.failed(ctx, cluster, reasonFailed, err)
	}
	c.backoff.Forget(cluster.UID)
	return 0, c.write(ctx, cluster, c.describe(cluster, instance))
}

// failed says what went wrong and when it will be tried again.
func (c *Controller) failed(ctx context.Context, cluster *v1alpha1.MessagingCluster, reason string, cause error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	failures, delay := c.backoff.Failed(cluster.UID, attemptOf(cluster))
	c.log.WarnContext(ctx, "a cluster is not as it should be, trying again", slog.String("cluster", cluster.Namespace+"/"+cluster.Name),
		slog.String("reason", reason), slog.String("error", cause.Error()), slog.Int("failures", failures), slog.Duration("delay", delay))
	return delay, c.notReady(ctx, cluster, reason, fmt.Sprintf("%v (failed %d times, next try in %s)", cause, failures, delay))
}

var errNoMember = errors.New("its pool member is not in the server's configuration any more")

func (c *Controller) spec(cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance) (provision.Spec, error) {
	_, member, ok := c.plan.Member(cluster.Spec.PoolMemberRef)
	if !ok {
		return provision.Spec{}, errNoMember
	}
	host := ""
	if len(cluster.Spec.ServiceEndpoints) > 0 {
		host = cluster.Spec.ServiceEndpoints[0].DNSName
	}
	return provision.Spec{
		UID: string(cluster.UID), Organization: cluster.Namespace, Instance: instance.Name,
		InstanceType: instance.Spec.Type, Name: cluster.Name, Host: host, Engine: member.Engine,
	}, nil
}

// finish tears the data plane down, and lets the cluster go after that.
func (c *Controller) finish(ctx context.Context, cluster *v1alpha1.MessagingCluster) (time.Duration, error) {
	if !finalizers.Has(cluster, kind.Finalizer) {
		return 0, nil
	}
	if ready, ok := conditions.Find(cluster.Status.Conditions, v1alpha1.ConditionReady); !ok || ready.Reason != conditions.ReasonDeleting {
		if err := c.notReady(ctx, cluster, conditions.ReasonDeleting, "the data plane is being torn down"); err != nil {
			return 0, err
		}
	}
	if err := c.plane.Destroy(ctx, string(cluster.UID)); err != nil {
		return c.failed(ctx, cluster, conditions.ReasonDeleting, fmt.Errorf("the teardown failed: %w", err))
	}
	c.backoff.Forget(cluster.UID)
	return 0, finalizers.Remove(ctx, cluster, kind.Finalizer, c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).Patch)
}

// mourn notes a cluster that is gone. Mostly its data plane is too; not so when
// somebody took the finalizer off by hand.
func (c *Controller) mourn(cluster *v1alpha1.MessagingCluster) {
	at := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	c.mu.Lock()
	c.gone[at] = append(c.gone[at], string(cluster.UID))
	c.mu.Unlock()
	c.backoff.Forget(cluster.UID)
	c.WakeName(cluster.Namespace, cluster.Name)
}

// bury removes what is left of clusters that are gone.
func (c *Controller) bury(ctx context.Context, namespace, name string) error {
	at := types.NamespacedName{Namespace: namespace, Name: name}
	c.mu.Lock()
	uids := c.gone[at]
	delete(c.gone, at)
	c.mu.Unlock()
	for i, uid := range uids {
		if err := c.plane.Destroy(ctx, uid); err != nil {
			c.mu.Lock()
			c.gone[at] = append(c.gone[at], uids[i:]...)
			c.mu.Unlock()
			return fmt.Errorf("removing what is left of cluster %s: %w", at, err)
		}
	}
	return nil
}

func owns(cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance) bool {
	for _, ref := range cluster.OwnerReferences {
		if ref.UID == instance.UID {
			return true
		}
	}
	return false
}

func own(cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance) {
	yes := true
	cluster.OwnerReferences = append(cluster.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MessagingInstance",
		Name: instance.Name, UID: instance.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	})
}
