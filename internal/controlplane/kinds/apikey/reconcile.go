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

// Controller issues late keys, and keeps what keys tell of themselves true as
// they expire and as their instances change.
type Controller struct {
	*reconcile.Reconciler[*object]
	client     versioned.Interface
	kind       *Kind
	keys       reconcile.Lookup[*object] // by account
	ofInstance reconcile.Lookup[*object]
}

// Controller makes the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{client: env.Client, kind: k}
	informer := cloud.APIKeys().Informer()
	if err := reconcile.Follow(informer, k.Put, k.Remove); err != nil {
		return nil, err
	}
	var err error
	c.keys, err = reconcile.Index(informer, "apikey by account",
		func(key *object) string { return key.Spec.ServiceAccountName })
	if err != nil {
		return nil, err
	}
	c.ofInstance, err = reconcile.Index(informer, "apikey by instance",
		func(key *object) string { return key.Spec.InstanceName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("apikey", informer, env.Log, c.reconcile); err != nil {
		return nil, err
	}
	k.issuer.OnWithdrawal(func() { // the informer's own copies: their names are all that is wanted
		for _, key := range informer.GetStore().ListKeys() {
			namespace, name, _ := strings.Cut(key, "/")
			c.WakeName(namespace, name)
		}
	})
	if err := reconcile.Watch(cloud.MessagingInstances().Informer(), c.wakeKeysFor); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.ServiceAccounts().Informer(), c.wakeKeysOf)
}

// wakeKeysFor looks at the keys of an instance that may have come, gone, or
// changed its mind about keys.
func (c *Controller) wakeKeysFor(instance metav1.Object) {
	for _, key := range c.ofInstance(instance.GetNamespace(), instance.GetName()) {
		c.Wake(key)
	}
}

// wakeKeysOf looks at the keys that may have waited for an account.
func (c *Controller) wakeKeysOf(account metav1.Object) {
	for _, key := range c.keys(account.GetNamespace(), account.GetName()) {
		if key.Status.IssuedAt == nil {
			c.Wake(key)
		}
	}
}

// issuingRetry is when to try again after a token could not be made.
const issuingRetry = time.Second

func (c *Controller) reconcile(ctx context.Context, key *object) (time.Duration, error) {
	api := c.client.CloudV1alpha1().APIKeys(key.Namespace)
	if reconcile.Deleting(key) {
		if c.kind.stale(key) {
			_, err := api.UpdateStatus(ctx, key, metav1.UpdateOptions{})
			return 0, err // the change brings the key back here
		}
		if !finalizers.Has(key, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, key, Finalizer, api.Patch)
	}
	if key.Status.IssuedAt == nil && c.kind.obstacle(key) == nil {
		// Writing the owner makes the store issue the key in the same write.
		c.kind.adopt(key)
		out, err := api.Update(ctx, key, metav1.UpdateOptions{})
		if err == nil && out.Status.IssuedAt == nil {
			return issuingRetry, nil
		}
		return 0, err
	}
	if c.kind.stale(key) {
		// The store writes what is true; the verifier needs no telling.
		_, err := api.UpdateStatus(ctx, key, metav1.UpdateOptions{})
		return 0, err
	}
	return c.untilEnd(key), nil
}

// untilEnd is how long a key still lives; 0 when that does not matter any more.
func (*Controller) untilEnd(key *object) time.Duration {
	end := key.Spec.ExpirationTime
	if end == nil || holds(key, v1alpha1.ConditionExpired) {
		return 0
	}
	return max(time.Millisecond, time.Until(end.Time))
}
