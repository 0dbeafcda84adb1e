package serviceaccount

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	kind "freshet/internal/resources/registry/serviceaccount"
)

// Controller provisions service accounts.
type Controller struct {
	*loop.Reconciler[*v1alpha1.ServiceAccount]
	client   versioned.Interface
	issuer   *identity.Issuer
	keys     listers.APIKeyLister
	bindings listers.ServiceAccountBindingLister
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, issuer *identity.Issuer, feed Feed, log *slog.Logger) (*Controller, error) {
	cloud := informers.Cloud().V1alpha1()
	c := &Controller{
		client: client, issuer: issuer,
		keys:     cloud.APIKeys().Lister(),
		bindings: cloud.ServiceAccountBindings().Lister(),
	}
	accounts := cloud.ServiceAccounts().Informer()
	if err := loop.Follow(accounts, feed.Put, feed.Delete); err != nil {
		return nil, err
	}
	var err error
	if c.Reconciler, err = loop.New("serviceaccount", accounts, log, c.reconcile); err != nil {
		return nil, err
	}
	// An account waits for its keys and bindings to go before it goes itself.
	wakeOwner := func(obj metav1.Object) {
		switch o := obj.(type) {
		case *v1alpha1.APIKey:
			c.WakeName(o.Namespace, o.Spec.ServiceAccountName)
		case *v1alpha1.ServiceAccountBinding:
			c.WakeName(o.Namespace, o.Spec.ServiceAccountName)
		}
	}
	if err := loop.Watch(cloud.APIKeys().Informer(), wakeOwner); err != nil {
		return nil, err
	}
	return c, loop.Watch(cloud.ServiceAccountBindings().Informer(), wakeOwner)
}

func (c *Controller) reconcile(ctx context.Context, sa *v1alpha1.ServiceAccount) (time.Duration, error) {
	if loop.Deleting(sa) {
		return 0, c.finish(ctx, sa)
	}
	if sa.DeletionTimestamp != nil {
		return time.Until(sa.DeletionTimestamp.Time), nil
	}
	if sa.Status.PrivateKeyData != "" && conditions.IsReady(sa.Status.Conditions, sa.Generation) {
		return 0, nil
	}
	return 0, c.provision(ctx, sa)
}

// provision makes credentials, once. The store tells the directory in the same
// write, so they work when Ready says so.
func (c *Controller) provision(ctx context.Context, sa *v1alpha1.ServiceAccount) error {
	if sa.Status.PrivateKeyData == "" {
		credentials := c.issuer.NewCredentials(sa.Namespace, sa.Name)
		sa.Status.PrivateKeyType = v1alpha1.PrivateKeyTypeCredentialsFile
		sa.Status.PrivateKeyData = base64.StdEncoding.EncodeToString(credentials.File())
	}
	sa.Status.Conditions = conditions.Set(sa.Status.Conditions,
		conditions.True(v1alpha1.ConditionReady, "Provisioned", "the credentials can be used", sa.Generation))
	_, err := c.client.CloudV1alpha1().ServiceAccounts(sa.Namespace).UpdateStatus(ctx, sa, metav1.UpdateOptions{})
	return err
}

// finish takes the account's keys and bindings along. Its tokens are dead since
// the delete call.
func (c *Controller) finish(ctx context.Context, sa *v1alpha1.ServiceAccount) error {
	if !finalizers.Has(sa, kind.Finalizer) {
		return nil
	}
	waiting, err := c.deleteBelongings(ctx, sa)
	if err != nil || waiting {
		return err
	}
	return finalizers.Remove(ctx, sa, kind.Finalizer, c.client.CloudV1alpha1().ServiceAccounts(sa.Namespace).Patch)
}

func (c *Controller) deleteBelongings(ctx context.Context, sa *v1alpha1.ServiceAccount) (waiting bool, err error) {
	keys, err := c.keys.APIKeys(sa.Namespace).List(labels.Everything())
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		if key.Spec.ServiceAccountName != sa.Name || !ownedOrOrphan(key, sa) {
			continue
		}
		waiting = true
		if key.DeletionTimestamp == nil {
			err := c.client.CloudV1alpha1().APIKeys(sa.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return true, fmt.Errorf("deleting key %s of account %s: %w", key.Name, sa.Name, err)
			}
		}
	}
	bindings, err := c.bindings.ServiceAccountBindings(sa.Namespace).List(labels.Everything())
	if err != nil {
		return false, err
	}
	for _, binding := range bindings {
		if binding.Spec.ServiceAccountName != sa.Name {
			continue
		}
		waiting = true
		if binding.DeletionTimestamp == nil {
			err := c.client.CloudV1alpha1().ServiceAccountBindings(sa.Namespace).Delete(ctx, binding.Name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return true, fmt.Errorf("deleting binding %s of account %s: %w", binding.Name, sa.Name, err)
			}
		}
	}
	return waiting, nil
}

// ownedOrOrphan leaves keys alone that were made for another account of the
// same name.
func ownedOrOrphan(obj metav1.Object, sa *v1alpha1.ServiceAccount) bool {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == "ServiceAccount" {
			return ref.UID == sa.UID
		}
	}
	return true
}
