// Package instance makes messaging instances ready: how clients authenticate,
// one condition per part, and an end that waits for the clusters.
//
// An instance runs nothing itself; its clusters do, and controllers/cluster
// looks after them.
package instance

import (
	"context"
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
	"freshet/internal/identity"
	"freshet/internal/resources/placement"
	kind "freshet/internal/resources/registry/messaginginstance"
)

// Controller looks after instances.
type Controller struct {
	*loop.Reconciler[*v1alpha1.MessagingInstance]
	client   versioned.Interface
	clusters listers.MessagingClusterLister
	plan     *placement.Plan
	issuer   string
}

// New makes the controller; issuer is the URL that tokens come from.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, plan *placement.Plan, issuer string, log *slog.Logger) (*Controller, error) {
	cloud := informers.Cloud().V1alpha1()
	c := &Controller{client: client, clusters: cloud.MessagingClusters().Lister(), plan: plan, issuer: issuer}
	var err error
	if c.Reconciler, err = loop.New("instance", cloud.MessagingInstances().Informer(), log, c.reconcile); err != nil {
		return nil, err
	}
	return c, loop.Watch(cloud.MessagingClusters().Informer(), func(obj metav1.Object) {
		if cluster, ok := obj.(*v1alpha1.MessagingCluster); ok {
			c.WakeName(cluster.Namespace, cluster.Spec.InstanceName)
		}
	})
}

func (c *Controller) reconcile(ctx context.Context, instance *v1alpha1.MessagingInstance) (time.Duration, error) {
	if loop.Deleting(instance) {
		return 0, c.finish(ctx, instance)
	}
	status := *instance.Status.DeepCopy()
	c.describe(instance, &status)
	return 0, c.write(ctx, instance, status)
}

// describe says how to use the instance and what of it is ready.
func (c *Controller) describe(instance *v1alpha1.MessagingInstance, status *v1alpha1.MessagingInstanceStatus) {
	generation := instance.Generation
	if _, ok := c.plan.Pool(instance.Spec.PoolRef); !ok {
		name := ""
		if instance.Spec.PoolRef != nil {
			name = instance.Spec.PoolRef.Name
		}
		status.Conditions = conditions.Set(status.Conditions, conditions.False(v1alpha1.ConditionReady,
			"PoolNotFound", "pool "+name+" is not in the server's configuration", generation))
		status.ObservedGeneration = generation
		return
	}
	method := "apikey"
	if auth := instance.Spec.Auth; auth != nil && auth.OAuth2 != nil {
		method = "oauth2"
	}
	status.Auth = &v1alpha1.InstanceAuthStatus{
		Type: method,
		OAuth2: &v1alpha1.InstanceAuthStatusOAuth2{
			IssuerURL: c.issuer,
			Audience:  identity.InstanceAudience(instance.Namespace, instance.Name),
		},
	}
	for _, part := range []string{"SubscriptionReady", "ResourceServerReady", "ServiceAccountReady"} {
		status.Conditions = conditions.Set(status.Conditions, conditions.True(part, "Created", "", generation))
	}
	status.Conditions = conditions.Set(status.Conditions,
		conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", generation))
	status.ObservedGeneration = generation
}

// finish lets the instance go when its last cluster is gone.
func (c *Controller) finish(ctx context.Context, instance *v1alpha1.MessagingInstance) error {
	if !finalizers.Has(instance, kind.Finalizer) {
		return nil
	}
	clusters, err := c.clusters.MessagingClusters(instance.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if cluster.Spec.InstanceName == instance.Name {
			status := *instance.Status.DeepCopy()
			status.Conditions = conditions.Set(status.Conditions, conditions.False(v1alpha1.ConditionReady,
				"Deleting", "waiting for cluster "+cluster.Name+" to go", instance.Generation))
			return c.write(ctx, instance, status)
		}
	}
	return finalizers.Remove(ctx, instance, kind.Finalizer, c.client.CloudV1alpha1().MessagingInstances(instance.Namespace).Patch)
}

func (c *Controller) write(ctx context.Context, instance *v1alpha1.MessagingInstance, status v1alpha1.MessagingInstanceStatus) error {
	if apiequality.Semantic.DeepEqual(instance.Status, status) {
		return nil
	}
	instance.Status = status
	_, err := c.client.CloudV1alpha1().MessagingInstances(instance.Namespace).UpdateStatus(ctx, instance, metav1.UpdateOptions{})
	return err
}
