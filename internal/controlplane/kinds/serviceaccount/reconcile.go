package serviceaccount

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/reconcile/finalizers"
	"freshet/internal/identity"
)

// Controller provisions service accounts.
type Controller struct {
	*reconcile.Reconciler[*object]
	client   versioned.Interface
	issuer   *identity.Issuer
	keys     reconcile.Lookup[*v1alpha1.APIKey]                // by account
	bindings reconcile.Lookup[*v1alpha1.ServiceAccountBinding] // by account
}

// Controller creates the kind's reconciler.
func (k *Kind) Controller(env reconcile.Env) (reconcile.Runner, error) {
	cloud := env.Informers.Cloud().V1alpha1()
	c := &Controller{client: env.Client, issuer: k.Issuer}
	accounts := cloud.ServiceAccounts().Informer()
	if err := reconcile.Follow(accounts, k.Put, k.Remove); err != nil {
		return nil, err
	}
	var err error
	if c.keys, err = reconcile.Index(cloud.APIKeys().Informer(), "account's keys",
		func(o *v1alpha1.APIKey) string { return o.Spec.ServiceAccountName }); err != nil {
		return nil, err
	}
	if c.bindings, err = reconcile.Index(cloud.ServiceAccountBindings().Informer(), "account's bindings",
		func(o *v1alpha1.ServiceAccountBinding) string { return o.Spec.ServiceAccountName }); err != nil {
		return nil, err
	}
	if c.Reconciler, err = reconcile.New("serviceaccount", accounts, env.Log, c); err != nil {
		return nil, err
	}
	// The deletion of an account waits for the deletion of its keys and bindings.
	enqueueOwner := func(obj metav1.Object) {
		switch o := obj.(type) {
		case *v1alpha1.APIKey:
			c.EnqueueName(o.Namespace, o.Spec.ServiceAccountName)
		case *v1alpha1.ServiceAccountBinding:
			c.EnqueueName(o.Namespace, o.Spec.ServiceAccountName)
		}
	}
	if err := reconcile.Watch(cloud.APIKeys().Informer(), enqueueOwner); err != nil {
		return nil, err
	}
	return c, reconcile.Watch(cloud.ServiceAccountBindings().Informer(), enqueueOwner)
}

// Reconcile implements reconcile.Handler.
func (c *Controller) Reconcile(ctx context.Context, sa *object) (time.Duration, error) {
	if reconcile.Deleting(sa) {
		return 0, c.finish(ctx, sa)
	}
	if sa.DeletionTimestamp != nil {
		return time.Until(reconcile.GraceEnd(sa)), nil
	}
	file := c.file(sa)
	ready, _ := conditions.Find(sa.Status.Conditions, v1alpha1.ConditionReady)
	if sa.Status.PrivateKeyData == file && ready.Reason == reasonProvisioned &&
		conditions.IsReady(sa.Status.Conditions, sa.Generation) {
		return untilReplacedExpire(sa), nil
	}
	return 0, c.provision(ctx, sa, file)
}

// untilReplacedExpire returns the time until replaced credentials can be removed; 0 if there are none. They
// are rejected after their end whether or not they are still stored.
func untilReplacedExpire(sa *object) time.Duration {
	if credentials, err := decode(sa); err == nil && credentials.Replaced.ClientID != "" {
		return max(time.Until(credentials.Replaced.Ends), time.Second)
	}
	return 0
}

// file returns the desired credentials file of an account. Credentials are created once and
// replaced by rotations; the issuer's address in the file follows the configuration.
func (c *Controller) file(sa *object) string {
	var credentials identity.Credentials
	if sa.Status.PrivateKeyData == "" {
		credentials = c.issuer.NewCredentials(sa.Namespace, sa.Name)
	} else {
		stored, err := decode(sa)
		if err != nil {
			return sa.Status.PrivateKeyData // do not overwrite; the feed logs the error
		}
		credentials = c.issuer.WithCurrentURL(stored, sa.Namespace, sa.Name)
		if !time.Now().Before(credentials.Replaced.Ends) {
			credentials.Replaced = identity.ReplacedCredentials{}
		}
	}
	return base64.StdEncoding.EncodeToString(credentials.Stored())
}

const reasonProvisioned = "Provisioned"

// provision writes the account's credentials. The store updates the directory in the same write, so
// the credentials work when Ready is True.
func (c *Controller) provision(ctx context.Context, sa *v1alpha1.ServiceAccount, file string) error {
	sa.Status.PrivateKeyType = v1alpha1.PrivateKeyTypeCredentialsFile
	sa.Status.PrivateKeyData = file
	sa.Status.Conditions = conditions.Set(sa.Status.Conditions,
		conditions.True(v1alpha1.ConditionReady, reasonProvisioned, "the credentials can be used", sa.Generation))
	_, err := c.client.CloudV1alpha1().ServiceAccounts(sa.Namespace).UpdateStatus(ctx, sa, metav1.UpdateOptions{})
	return err
}

// finish deletes the account's keys and bindings and then removes the finalizer. Its tokens are
// rejected since the delete call.
func (c *Controller) finish(ctx context.Context, sa *object) error {
	list, changed := conditions.Deleting(sa.Status.Conditions, "its keys and bindings are being deleted first",
		sa.Generation)
	if changed {
		sa.Status.Conditions = list
		_, err := c.client.CloudV1alpha1().ServiceAccounts(sa.Namespace).UpdateStatus(ctx, sa, metav1.UpdateOptions{})
		return err // the status change queues the account again
	}
	if !finalizers.Has(sa, Finalizer) {
		return nil
	}
	left, err := c.deleteDependents(ctx, sa)
	if err != nil || left {
		return err // their deletion queues the account again
	}
	return finalizers.Remove(ctx, sa, Finalizer, c.client.CloudV1alpha1().ServiceAccounts(sa.Namespace).Patch)
}

// deleteDependents deletes the account's keys and bindings, and reports whether any are left.
func (c *Controller) deleteDependents(ctx context.Context, sa *object) (left bool, err error) {
	api := c.client.CloudV1alpha1()
	deleteOne := func(obj metav1.Object, remove func(context.Context, string, metav1.DeleteOptions) error) error {
		left = true
		if obj.GetDeletionTimestamp() != nil {
			return nil
		}
		uid := obj.GetUID()
		err := remove(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s of account %s: %w", obj.GetName(), sa.Name, err)
		}
		return nil
	}
	for _, key := range c.keys(sa.Namespace, sa.Name) {
		if ownedOrOrphan(key, sa) {
			if err := deleteOne(key, api.APIKeys(sa.Namespace).Delete); err != nil {
				return true, err
			}
		}
	}
	for _, binding := range c.bindings(sa.Namespace, sa.Name) {
		if ownedOrOrphan(binding, sa) {
			if err := deleteOne(binding, api.ServiceAccountBindings(sa.Namespace).Delete); err != nil {
				return true, err
			}
		}
	}
	return left, nil
}

// ownedOrOrphan excludes objects that were created for another account of the same name.
func ownedOrOrphan(obj metav1.Object, sa *object) bool {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == "ServiceAccount" {
			return ref.UID == sa.UID
		}
	}
	return true
}
