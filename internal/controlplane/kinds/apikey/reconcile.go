package apikey

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/finalizers"
)

// Controller issues keys that were created before their account, and updates the conditions of keys
// when they expire and when their instances change.
type Controller struct {
	*reconcile.Reconciler[*object]
	client versioned.Interface
	kind   *Kind
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{client: env.Client, kind: k}
	informer := cloud.APIKeys().Informer()
	if err := reconcile.Follow(informer, k.Put, k.Remove); err != nil {
		return nil, err
	}
	keysOfAccount, err := reconcile.Index(informer, "apikey by account",
		func(key *object) string { return key.Spec.ServiceAccountName })
	if err != nil {
		return nil, err
	}
	keysOfInstance, err := reconcile.Index(informer, "apikey by instance",
		func(key *object) string { return key.Spec.InstanceName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("apikey", informer, env.Log, c.reconcile); err != nil {
		return nil, err
	}
	k.issuer.OnWithdrawal(func() { // only the names are used, so the informer's shared objects are not copied
		for _, key := range informer.GetStore().ListKeys() {
			namespace, name, _ := strings.Cut(key, "/")
			c.EnqueueName(namespace, name)
		}
	})
	// An instance was created, deleted or changed its authentication.
	err = reconcile.Watch(cloud.MessagingInstances().Informer(), func(instance metav1.Object) {
		for _, key := range keysOfInstance(instance.GetNamespace(), instance.GetName()) {
			c.Enqueue(key)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.ServiceAccounts().Informer(), func(account metav1.Object) {
		for _, key := range keysOfAccount(account.GetNamespace(), account.GetName()) {
			if key.Status.IssuedAt == nil { // it may have waited for the account
				c.Enqueue(key)
			}
		}
	})
}

// issuingRetry is the retry interval after a token could not be issued.
const issuingRetry = time.Second

func (c *Controller) reconcile(ctx context.Context, key *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().APIKeys(key.Namespace)
	if reconcile.Deleting(key) {
		if c.kind.stale(key) {
			_, err := api.UpdateStatus(ctx, key, metav1.UpdateOptions{})
			return 0, err // the status change queues the key again
		}
		if !finalizers.Has(key, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, key, Finalizer, api.Patch)
	}
	if key.Status.IssuedAt == nil && c.kind.obstacle(key) == nil {
		// The update with the owner makes the store issue the key in the same write.
		c.kind.setOwner(key)
		out, err := api.Update(ctx, key, metav1.UpdateOptions{})
		if err == nil && out.Status.IssuedAt == nil {
			return issuingRetry, nil
		}
		return 0, err
	}
	if c.kind.stale(key) {
		// The store derives the correct status; the verifier does not depend on it.
		_, err := api.UpdateStatus(ctx, key, metav1.UpdateOptions{})
		return 0, err
	}
	return untilExpiry(key), nil
}

// untilExpiry returns the time until a key expires, or 0 if the key has no end or is expired.
func untilExpiry(key *object) time.Duration {
	end := key.Spec.ExpirationTime
	if end == nil || isTrue(key, v1alpha1.ConditionExpired) {
		return 0
	}
	return max(time.Millisecond, time.Until(end.Time))
}
