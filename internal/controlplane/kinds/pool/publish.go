package pool

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
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

func publish(ctx context.Context, client versioned.Interface, pool pools.Pool) error {
	want := &object{
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name},
		Spec: v1alpha1.PoolSpec{
			Type: pool.Type, DeploymentType: pool.DeploymentType,
			Sharing: &v1alpha1.PoolSharing{Namespaces: []string{"*"}},
		},
	}
	return reconcile.Publish(ctx, client.CloudV1alpha1().Pools(pool.Namespace), published{want})
}

// published is a pool of the plan.
type published struct{ want *object }

// Want implements reconcile.Published.
func (p published) Want() *object { return p.want }

// Sync implements reconcile.Published.
func (p published) Sync(stored *object) bool { return reconcile.Replace(&stored.Spec, p.want.Spec) }

// Describe implements reconcile.Published.
func (published) Describe(stored *object) bool {
	return reconcile.Describe(&stored.Status.Conditions, stored.Generation)
}
