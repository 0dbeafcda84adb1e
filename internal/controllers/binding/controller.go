// Package binding looks after service account bindings: ready when the account
// and the pool member both exist, gone with the account.
package binding

import (
	"context"
	"log/slog"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	listers "freshet/api/generated/listers/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/conditions"
	"freshet/internal/controllers/finalizers"
	"freshet/internal/controllers/loop"
	"freshet/internal/resources/placement"
	kind "freshet/internal/resources/registry/serviceaccountbinding"
)

// Controller looks after service account bindings.
type Controller struct {
	*loop.Reconciler[*v1alpha1.ServiceAccountBinding]
	client   versioned.Interface
	accounts listers.ServiceAccountLister
	bindings loop.Lookup[*v1alpha1.ServiceAccountBinding] // by account
	plan     *placement.Plan
}

// New makes the controller.
func New(client versioned.Interface, informers externalversions.SharedInformerFactory, plan *placement.Plan, log *slog.Logger) (*Controller, error) {
	cloud := informers.Cloud().V1alpha1()
	c := &Controller{
		client: client, plan: plan,
		accounts: cloud.ServiceAccounts().Lister(),
	}
	var err error
	c.bindings, err = loop.Index(cloud.ServiceAccountBindings().Informer(), "binding by account",
		func(b *v1alpha1.ServiceAccountBinding) string { return b.Spec.ServiceAccountName })
	if err != nil {
		return nil, err
	}
	if c.Reconciler, err = loop.New("binding", cloud.ServiceAccountBindings().Informer(), log, c.reconcile); err != nil {
		return nil, err
	}
	return c, loop.Watch(cloud.ServiceAccounts().Informer(), c.wakeBindingsOf)
}

func (c *Controller) wakeBindingsOf(account metav1.Object) {
	for _, binding := range c.bindings(account.GetNamespace(), account.GetName()) {
		c.Wake(binding)
	}
}

func (c *Controller) reconcile(ctx context.Context, binding *v1alpha1.ServiceAccountBinding) (time.Duration, error) {
	api := c.client.CloudV1alpha1().ServiceAccountBindings(binding.Namespace)
	if loop.Deleting(binding) {
		if !finalizers.Has(binding, kind.Finalizer) {
			return 0, nil
		}
		return 0, finalizers.Remove(ctx, binding, kind.Finalizer, api.Patch)
	}
	account, err := c.accounts.ServiceAccounts(binding.Namespace).Get(binding.Spec.ServiceAccountName)
	if err == nil && account.DeletionTimestamp == nil && !ownedBy(binding, account) {
		adopt(binding, account)
		_, err := api.Update(ctx, binding, metav1.UpdateOptions{})
		return 0, err // the change brings the binding back here
	}
	status := *binding.Status.DeepCopy()
	c.describe(binding, err == nil, &status)
	if apiequality.Semantic.DeepEqual(binding.Status, status) {
		return 0, nil
	}
	binding.Status = status
	_, err = api.UpdateStatus(ctx, binding, metav1.UpdateOptions{})
	return 0, err
}

func (c *Controller) describe(binding *v1alpha1.ServiceAccountBinding, accountExists bool, status *v1alpha1.ServiceAccountBindingStatus) {
	generation := binding.Generation
	member := binding.Spec.PoolMemberRef
	status.Conditions = conditions.Set(status.Conditions, conditions.True("IAMAccountReady", "NotRequired",
		"the pool member has no identity system of its own", generation))
	ready := conditions.True(v1alpha1.ConditionReady, conditions.ReasonReady, "", generation)
	if _, _, ok := c.plan.Member(&member); !ok {
		ready = conditions.False(v1alpha1.ConditionReady, "PoolMemberNotFound", "pool member "+member.Name+" does not exist", generation)
	}
	if !accountExists {
		ready = conditions.False(v1alpha1.ConditionReady, "ServiceAccountNotFound",
			"service account "+binding.Spec.ServiceAccountName+" does not exist", generation)
	}
	status.Conditions = conditions.Set(status.Conditions, ready)
}

func ownedBy(binding *v1alpha1.ServiceAccountBinding, account *v1alpha1.ServiceAccount) bool {
	for _, ref := range binding.OwnerReferences {
		if ref.UID == account.UID {
			return true
		}
	}
	return false
}

func adopt(binding *v1alpha1.ServiceAccountBinding, account *v1alpha1.ServiceAccount) {
	yes := true
	binding.OwnerReferences = append(binding.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ServiceAccount",
		Name: account.Name, UID: account.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	})
}
