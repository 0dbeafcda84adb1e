// Package cluster makes messaging clusters real: it asks the data plane for one
// store and one set of surfaces per cluster, says in status what really runs,
// and takes everything down before the cluster goes.
//
// What a running cluster is lies behind Plane, which dataplane implements.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	listers "freshet/api/generated/listers/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/controllers/finalizers"
	"freshet/internal/controllers/loop"
	"freshet/internal/resources/placement"
	kind "freshet/internal/resources/registry/messagingcluster"
)

// Spec is what the data plane has to know of a cluster.
type Spec struct {
	UID          string
	Organization string
	Instance     string
	InstanceType string
	Name         string
	Host         string // the name it answers at
	Engine       string
}

// Plane runs clusters.
type Plane interface {
	// Provision opens the cluster, or brings an open one up to date. Calling it
	// again with the same spec changes nothing.
	Provision(ctx context.Context, spec Spec) error
	// Destroy closes the cluster and removes its data; one that is not there is fine.
	Destroy(ctx context.Context, uid string) error
}

// Components are the parts of a cluster, each with a condition of its own.
var components = []string{"MetadataReady", "StorageReady", "BrokerReady", "ProxyReady"}

const (
	reasonDeployed     = "Deploy"
	reasonProvisioning = "Provisioning"
	reasonUpdating     = "Updating"
	reasonFailed       = "ProvisioningFailed"
	reasonDeleting     = "Deleting"
	reasonNoInstance   = "InstanceNotFound"
)

// Controller looks after clusters.
type Controller struct {
	*loop.Reconciler[*v1alpha1.MessagingCluster]
	client    versioned.Interface
	instances listers.MessagingInstanceLister
	clusters  listers.MessagingClusterLister
	plan      *placement.Plan
	plane     Plane
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, plan *placement.Plan, plane Plane, log *slog.Logger) (*Controller, error) {
	cloud := informers.Cloud().V1alpha1()
	c := &Controller{
		client: client, plan: plan, plane: plane,
		instances: cloud.MessagingInstances().Lister(),
		clusters:  cloud.MessagingClusters().Lister(),
	}
	var err error
	if c.Reconciler, err = loop.New("cluster", cloud.MessagingClusters().Informer(), log, c.reconcile); err != nil {
		return nil, err
	}
	return c, loop.Watch(cloud.MessagingInstances().Informer(), c.wakeClustersOf)
}

func (c *Controller) wakeClustersOf(instance metav1.Object) {
	clusters, err := c.clusters.MessagingClusters(instance.GetNamespace()).List(labels.Everything())
	if err != nil {
		return
	}
	for _, cluster := range clusters {
		if cluster.Spec.InstanceName == instance.GetName() {
			c.Wake(cluster)
		}
	}
}

func (c *Controller) reconcile(ctx context.Context, cluster *v1alpha1.MessagingCluster) (time.Duration, error) {
	if loop.Deleting(cluster) {
		return 0, c.finish(ctx, cluster)
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
	return 0, c.provision(ctx, cluster, instance)
}

// provision brings up what the spec asks for and says so, step by step.
func (c *Controller) provision(ctx context.Context, cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance) error {
	if !conditions.IsReady(cluster.Status.Conditions, cluster.Generation) {
		if err := c.announce(ctx, cluster); err != nil {
			return err
		}
	}
	spec, err := c.spec(cluster, instance)
	if err == nil {
		err = c.plane.Provision(ctx, spec)
	}
	if err != nil {
		if writeErr := c.notReady(ctx, cluster, reasonFailed, err.Error()); writeErr != nil {
			return writeErr
		}
		return fmt.Errorf("provisioning cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	status := *cluster.Status.DeepCopy()
	describe(cluster, instance, &status)
	if pool, _, ok := c.plan.Member(cluster.Spec.PoolMemberRef); ok {
		status.DeploymentType = pool.DeploymentType
	}
	return c.write(ctx, cluster, status)
}

// announce says what is about to happen: a first provisioning or an update.
func (c *Controller) announce(ctx context.Context, cluster *v1alpha1.MessagingCluster) error {
	if ready, ok := conditions.Find(cluster.Status.Conditions, v1alpha1.ConditionReady); ok && ready.Reason == reasonFailed {
		return nil // a retry: keep showing why the last try failed
	}
	reason, message := reasonProvisioning, "the data plane is being set up"
	if cluster.Status.ObservedGeneration > 0 {
		reason, message = reasonUpdating, "the new spec is being applied"
	}
	status := *cluster.Status.DeepCopy()
	if reason == reasonProvisioning {
		for _, component := range components {
			status.Conditions = conditions.Set(status.Conditions,
				conditions.False(component, reasonDeployed, "being set up", cluster.Generation))
		}
	}
	status.Conditions = conditions.Set(status.Conditions,
		conditions.False(v1alpha1.ConditionReady, reason, message, cluster.Generation))
	return c.write(ctx, cluster, status)
}

// describe tells what really runs: on an embedded member one process is broker
// and storage at once, whatever number of replicas the spec records.
func describe(cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance, status *v1alpha1.MessagingClusterStatus) {
	status.ObservedGeneration = cluster.Generation
	status.Broker = &v1alpha1.ComponentStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1}
	status.Storage = &v1alpha1.ComponentStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1}
	status.InstanceType = instance.Spec.Type
	for _, component := range components {
		status.Conditions = conditions.Set(status.Conditions,
			conditions.True(component, reasonDeployed, "All components are ready", cluster.Generation))
	}
	status.Conditions = conditions.Set(status.Conditions,
		conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", cluster.Generation))
}

func (c *Controller) spec(cluster *v1alpha1.MessagingCluster, instance *v1alpha1.MessagingInstance) (Spec, error) {
	_, member, ok := c.plan.Member(cluster.Spec.PoolMemberRef)
	if !ok {
		return Spec{}, fmt.Errorf("its pool member is not in the server's configuration any more")
	}
	host := ""
	if len(cluster.Spec.ServiceEndpoints) > 0 {
		host = cluster.Spec.ServiceEndpoints[0].DNSName
	}
	return Spec{
		UID: string(cluster.UID), Organization: cluster.Namespace, Instance: instance.Name,
		InstanceType: instance.Spec.Type, Name: cluster.Name, Host: host, Engine: member.Engine,
	}, nil
}

// finish tears the data plane down, and lets the cluster go after that.
func (c *Controller) finish(ctx context.Context, cluster *v1alpha1.MessagingCluster) error {
	if !finalizers.Has(cluster, kind.Finalizer) {
		return nil
	}
	if err := c.plane.Destroy(ctx, string(cluster.UID)); err != nil {
		if writeErr := c.notReady(ctx, cluster, reasonDeleting, "teardown failed and will be tried again: "+err.Error()); writeErr != nil {
			return writeErr
		}
		return fmt.Errorf("tearing down cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	return finalizers.Remove(ctx, cluster, kind.Finalizer, c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).Patch)
}

func (c *Controller) notReady(ctx context.Context, cluster *v1alpha1.MessagingCluster, reason, message string) error {
	status := *cluster.Status.DeepCopy()
	status.Conditions = conditions.Set(status.Conditions,
		conditions.False(v1alpha1.ConditionReady, reason, message, cluster.Generation))
	return c.write(ctx, cluster, status)
}

// write stores a changed status and keeps the object current for the next write.
func (c *Controller) write(ctx context.Context, cluster *v1alpha1.MessagingCluster, status v1alpha1.MessagingClusterStatus) error {
	if apiequality.Semantic.DeepEqual(cluster.Status, status) {
		return nil
	}
	cluster.Status = status
	out, err := c.client.CloudV1alpha1().MessagingClusters(cluster.Namespace).UpdateStatus(ctx, cluster, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	*cluster = *out
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
