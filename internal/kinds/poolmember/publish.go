package poolmember

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/placement"
	"freshet/internal/reconcile/conditions"
)

// Publish writes the members of the plan's pools.
func (k *Kind) Publish(ctx context.Context, client versioned.Interface) error {
	for _, pool := range k.plan.Pools {
		for _, member := range pool.Members {
			if err := publish(ctx, client, k.plan.Domain, pool, member); err != nil {
				return fmt.Errorf("writing pool member %s: %w", member.Name, err)
			}
		}
	}
	return nil
}

func publish(ctx context.Context, client versioned.Interface, domain string, pool placement.Pool, member placement.Member) error {
	api := client.CloudV1alpha1().PoolMembers(pool.Namespace)
	spec := v1alpha1.PoolMemberSpec{
		PoolName: pool.Name, Type: pool.Type, Location: member.Location, Engine: member.Engine,
		Domains: []v1alpha1.PoolMemberDomain{{Name: domain, Type: "service"}},
	}
	have, err := api.Get(ctx, member.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		have, err = api.Create(ctx, &object{ObjectMeta: metav1.ObjectMeta{Name: member.Name}, Spec: spec}, metav1.CreateOptions{})
	case err == nil && !apiequality.Semantic.DeepEqual(have.Spec, spec):
		have.Spec = spec
		have, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil || len(have.Status.Conditions) > 0 {
		return err
	}
	have.Status.DeploymentType = pool.DeploymentType
	have.Status.Conditions = conditions.Published(have.Generation)
	_, err = api.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}
