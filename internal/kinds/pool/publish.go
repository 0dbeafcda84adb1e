package pool

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

// Publish writes the pools of the plan.
func (k *Kind) Publish(ctx context.Context, client versioned.Interface) error {
	for _, pool := range k.plan.Pools {
		if err := publish(ctx, client, pool); err != nil {
			return fmt.Errorf("writing pool %s: %w", pool.Name, err)
		}
	}
	return nil
}

func publish(ctx context.Context, client versioned.Interface, pool placement.Pool) error {
	api := client.CloudV1alpha1().Pools(pool.Namespace)
	spec := v1alpha1.PoolSpec{
		Type: pool.Type, DeploymentType: pool.DeploymentType,
		Sharing: &v1alpha1.PoolSharing{Namespaces: []string{"*"}},
	}
	have, err := api.Get(ctx, pool.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		have, err = api.Create(ctx, &object{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}, Spec: spec}, metav1.CreateOptions{})
	case err == nil && !apiequality.Semantic.DeepEqual(have.Spec, spec):
		have.Spec = spec
		have, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil || len(have.Status.Conditions) > 0 {
		return err
	}
	have.Status.Conditions = conditions.Published(have.Generation)
	_, err = api.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}
