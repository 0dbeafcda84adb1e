package apikey

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/reconcile"
	"freshet/internal/reconcile/finalizers"
)

// Controller issues late keys and expires old ones.
type Controller struct {
	*reconcile.Reconciler[*object]
	client versioned.Interface
	kind   *Kind
	keys   reconcile.Lookup[*object] // by account
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
	c.keys, err = reconcile.Index(informer, "apikey by account", func(key *object) string { return key.Spec.ServiceAccountName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("apikey", informer, env.Log, c.reconcile); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.ServiceAccounts().Informer(), c.wakeKeysOf)
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
		if !finalizers.Has(key, Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, key, Finalizer, api.Patch)
	}
	if overdue(key) && !holds(key, v1alpha1.ConditionExpired) {
		return 0, c.expire(ctx, key)
	}
	if key.Status.IssuedAt == nil && !key.Spec.Revoke && !overdue(key) {
		if _, ok := c.kind.directory.Account(key.Namespace, key.Spec.ServiceAccountName); ok {
			// Writing the owner makes the store issue the key in the same write.
			c.kind.adopt(key)
			out, err := api.Update(ctx, key, metav1.UpdateOptions{})
			if err == nil && out.Status.IssuedAt == nil {
				return issuingRetry, nil
			}
			return 0, err
		}
		// The account's coming wakes us.
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

// expire says so when a key's time is over; the verifier needs no telling.
func (c *Controller) expire(ctx context.Context, key *object) error {
	if key.Status.IssuedAt == nil {
		describe(key, false, reasonExpired, "the key expired before it was issued")
	} else {
		set(key, v1alpha1.ConditionExpired, metav1.ConditionTrue, reasonExpired, "the key has expired")
	}
	_, err := c.client.CloudV1alpha1().APIKeys(key.Namespace).UpdateStatus(ctx, key, metav1.UpdateOptions{})
	return err
}
