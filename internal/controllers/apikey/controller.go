package apikey

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/finalizers"
	"freshet/internal/controllers/loop"
	kind "freshet/internal/resources/registry/apikey"
)

// Controller issues late keys and expires old ones.
type Controller struct {
	*loop.Reconciler[*v1alpha1.APIKey]
	client versioned.Interface
	issuer *Issuer
	keys   loop.Lookup[*v1alpha1.APIKey] // by account
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, issuer *Issuer, feed Feed, log *slog.Logger) (*Controller, error) {
	cloud := informers.Cloud().V1alpha1()
	c := &Controller{client: client, issuer: issuer}
	informer := cloud.APIKeys().Informer()
	if err := loop.Follow(informer, feed.Put, feed.Delete); err != nil {
		return nil, err
	}
	var err error
	c.keys, err = loop.Index(informer, "apikey by account", func(key *v1alpha1.APIKey) string { return key.Spec.ServiceAccountName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = loop.New("apikey", informer, log, c.reconcile); err != nil {
		return nil, err
	}
	return c, loop.Watch(cloud.ServiceAccounts().Informer(), c.wakeKeysOf)
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

func (c *Controller) reconcile(ctx context.Context, key *v1alpha1.APIKey) (time.Duration, error) {
	api := c.client.CloudV1alpha1().APIKeys(key.Namespace)
	if loop.Deleting(key) {
		if !finalizers.Has(key, kind.Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, key, kind.Finalizer, api.Patch)
	}
	if overdue(key) && !holds(key, v1alpha1.ConditionExpired) {
		return 0, c.expire(ctx, key)
	}
	if key.Status.IssuedAt == nil && !key.Spec.Revoke && !overdue(key) {
		if _, ok := c.issuer.Directory.Account(key.Namespace, key.Spec.ServiceAccountName); ok {
			// Writing the owner makes the store issue the key in the same write.
			c.issuer.adopt(key)
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
func (*Controller) untilEnd(key *v1alpha1.APIKey) time.Duration {
	end := key.Spec.ExpirationTime
	if end == nil || holds(key, v1alpha1.ConditionExpired) {
		return 0
	}
	return max(time.Millisecond, time.Until(end.Time))
}

// expire says so when a key's time is over; the verifier needs no telling.
func (c *Controller) expire(ctx context.Context, key *v1alpha1.APIKey) error {
	if key.Status.IssuedAt == nil {
		describe(key, false, reasonExpired, "the key expired before it was issued")
	} else {
		set(key, v1alpha1.ConditionExpired, metav1.ConditionTrue, reasonExpired, "the key has expired")
	}
	_, err := c.client.CloudV1alpha1().APIKeys(key.Namespace).UpdateStatus(ctx, key, metav1.UpdateOptions{})
	return err
}
