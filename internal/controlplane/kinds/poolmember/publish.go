package poolmember

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile"
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

func publish(ctx context.Context, client versioned.Interface, domain string, pool pools.Pool,
	member pools.Member,
) error {
	want := &object{
		ObjectMeta: metav1.ObjectMeta{Name: member.Name},
		Spec: v1alpha1.PoolMemberSpec{
			PoolName: pool.Name, Type: pool.Type, Location: member.Location, Engine: member.Engine,
			Domains: []v1alpha1.PoolMemberDomain{{Name: domain, Type: "service"}},
		},
	}
	return reconcile.Publish(ctx, client.CloudV1alpha1().PoolMembers(pool.Namespace),
		published{want, pool.DeploymentType})
}

// published is a member of one of the plan's pools.
type published struct {
	want           *object
	deploymentType string
}

// Want implements reconcile.Published.
func (p published) Want() *object { return p.want }

// Sync implements reconcile.Published.
func (p published) Sync(stored *object) bool { return reconcile.Replace(&stored.Spec, p.want.Spec) }

// Describe implements reconcile.Published.
func (p published) Describe(stored *object) bool {
	if !reconcile.Describe(&stored.Status.Conditions, stored.Generation) {
		return false
	}
	stored.Status.DeploymentType = p.deploymentType
	return true
}
