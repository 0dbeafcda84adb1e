package messaginginstance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/finalizers"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
)

// Controller makes instances ready, and deletes their keys with them.
type Controller struct {
	*reconcile.Reconciler[*object]
	client    versioned.Interface
	clusters  reconcile.Lookup[*v1alpha1.MessagingCluster] // by instance
	keys      reconcile.Lookup[*v1alpha1.APIKey]           // by instance
	plan      *pools.Plan
	issuerURL string
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{client: env.Client, plan: k.plan, issuerURL: k.issuerURL}
	if err := reconcile.Follow(cloud.MessagingInstances().Informer(), k.Put, k.Remove); err != nil {
		return nil, err
	}
	var err error
	if c.clusters, err = reconcile.Index(cloud.MessagingClusters().Informer(), "instance's clusters",
		func(o *v1alpha1.MessagingCluster) string { return o.Spec.InstanceName }); err != nil {
		return nil, err
	}
	if c.keys, err = reconcile.Index(cloud.APIKeys().Informer(), "instance's keys",
		func(o *v1alpha1.APIKey) string { return o.Spec.InstanceName }); err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("messaginginstance", cloud.MessagingInstances().Informer(), env.Log,
		c); err != nil {
		return nil, err
	}
	// The deletion of an instance waits for the deletion of its clusters and keys.
	enqueue := func(obj metav1.Object) {
		switch o := obj.(type) {
		case *v1alpha1.MessagingCluster:
			c.EnqueueName(o.Namespace, o.Spec.InstanceName)
		case *v1alpha1.APIKey:
			if o.Spec.InstanceName != "" {
				c.EnqueueName(o.Namespace, o.Spec.InstanceName)
			}
		}
	}
	if err := reconcile.Watch(cloud.MessagingClusters().Informer(), enqueue); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.APIKeys().Informer(), enqueue)
}

// Reconcile implements reconcile.Handler.
func (c *Controller) Reconcile(ctx context.Context, instance *object) (time.Duration, error) {
	if reconcile.Deleting(instance) {
		return 0, c.finish(ctx, instance)
	}
	status := *instance.Status.DeepCopy()
	c.describe(instance, &status)
	return 0, c.write(ctx, instance, status)
}

// componentConditions are the components of an instance, each with its own condition.
var componentConditions = []string{"SubscriptionReady", "ResourceServerReady", "ServiceAccountReady"}

// describe writes the authentication and the conditions of an instance to status.
func (c *Controller) describe(instance *object, status *v1alpha1.MessagingInstanceStatus) {
	generation := instance.Generation
	status.ObservedGeneration = generation
	if _, ok := c.plan.Pool(instance.Spec.PoolRef); !ok {
		name := ""
		if instance.Spec.PoolRef != nil {
			name = instance.Spec.PoolRef.Name
		}
		message := "pool " + name + " is not in the server's configuration; add it to pools, or delete the instance"
		status.Conditions = conditionsOf(status.Conditions, "PoolNotFound", message,
			conditions.False(v1alpha1.ConditionReady, "PoolNotFound", message, generation))
		return
	}
	method := "apikey"
	if auth := instance.Spec.Auth; auth != nil && auth.OAuth2 != nil {
		method = "oauth2"
	}
	status.Auth = &v1alpha1.InstanceAuthStatus{
		Type: method,
		OAuth2: &v1alpha1.InstanceAuthStatusOAuth2{
			IssuerURL: c.issuerURL,
			Audience:  identity.InstanceAudience(instance.Namespace, instance.Name),
		},
	}
	status.Conditions = conditionsOf(status.Conditions, "Created", "",
		conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", generation))
}

// conditionsOf returns the conditions of the parts with the status of ready, and ready last.
func conditionsOf(old []v1alpha1.Condition, reason, message string, ready v1alpha1.Condition) []v1alpha1.Condition {
	desired := make([]v1alpha1.Condition, 0, len(componentConditions)+1)
	for _, part := range componentConditions {
		c := ready
		c.Type, c.Reason, c.Message = part, reason, message
		desired = append(desired, c)
	}
	return conditions.Replace(old, append(desired, ready)...)
}

// finish removes the finalizer when the last cluster and the last key of the instance are deleted.
// The keys are rejected since the delete call.
func (c *Controller) finish(ctx context.Context, instance *object) error {
	if !finalizers.Has(instance, Finalizer) {
		status := *instance.Status.DeepCopy()
		status.Conditions, _ = conditions.Deleting(status.Conditions, conditions.MessageDeleting, instance.Generation)
		return c.write(ctx, instance, status)
	}
	waiting, err := c.deleteClusters(ctx, instance)
	if err != nil {
		return err
	}
	if waiting == "" {
		if waiting, err = c.deleteKeys(ctx, instance); err != nil {
			return err
		}
	}
	message := "all clusters and keys are deleted"
	if waiting != "" {
		message = "waiting for the deletion of " + waiting
	}
	status := *instance.Status.DeepCopy()
	status.Conditions = conditions.Set(status.Conditions,
		conditions.False(v1alpha1.ConditionReady, conditions.ReasonDeleting, message, instance.Generation))
	if err := c.write(ctx, instance, status); err != nil || waiting != "" {
		return err
	}
	return finalizers.Remove(ctx, instance, Finalizer,
		c.client.CloudV1alpha1().MessagingInstances(instance.Namespace).Patch)
}

// deleteClusters deletes the instance's clusters, and returns one that still exists. A delete call
// without foreground propagation is rejected while clusters exist, so these are to be deleted with
// the instance, or were created while its deletion was being accepted.
func (c *Controller) deleteClusters(ctx context.Context, instance *object) (waiting string, err error) {
	for _, cluster := range c.clusters(instance.Namespace, instance.Name) {
		waiting = "cluster " + cluster.Name
		if store.Protected(cluster) {
			return fmt.Sprintf("%s, which is protected: set its annotation %s to \"false\"", waiting,
				v1alpha1.AnnotationDestroyProtected), nil
		}
		if cluster.DeletionTimestamp != nil {
			continue
		}
		err := c.client.CloudV1alpha1().MessagingClusters(instance.Namespace).Delete(ctx, cluster.Name,
			metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &cluster.UID},
			})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("deleting cluster %s of instance %s: %w", cluster.Name, instance.Name, err)
		}
	}
	return waiting, nil
}

// deleteKeys deletes the keys that are valid for this instance only, and returns one that still
// exists.
func (c *Controller) deleteKeys(ctx context.Context, instance *object) (waiting string, err error) {
	for _, key := range c.keys(instance.Namespace, instance.Name) {
		waiting = "API key " + key.Name
		if key.DeletionTimestamp != nil {
			continue
		}
		err := c.client.CloudV1alpha1().APIKeys(instance.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &key.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("deleting key %s of instance %s: %w", key.Name, instance.Name, err)
		}
	}
	return waiting, nil
}

// write stores a changed status and updates the object for the next write.
func (c *Controller) write(ctx context.Context, instance *object, status v1alpha1.MessagingInstanceStatus) error {
	api := c.client.CloudV1alpha1().MessagingInstances(instance.Namespace)
	return reconcile.WriteStatus(ctx, api, instance, &instance.Status, status)
}
