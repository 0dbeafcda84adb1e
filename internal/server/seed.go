package server

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/config"
	"freshet/internal/resources/placement"
)

// seed writes what comes with the service: roles from access, pools and members
// from the configuration. What is no longer there is removed.
func seed(ctx context.Context, client versioned.Interface, plan *placement.Plan) error {
	if err := seedRoles(ctx, client); err != nil {
		return fmt.Errorf("writing the predefined roles: %w", err)
	}
	if err := seedPools(ctx, client, plan); err != nil {
		return fmt.Errorf("writing the pools: %w", err)
	}
	return nil
}

// seedRoles compares with what is stored, so that only a first start and an
// upgrade have something to write.
func seedRoles(ctx context.Context, client versioned.Interface) error {
	api := client.CloudV1alpha1().ClusterRoles()
	stored, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	have := map[string]*v1alpha1.ClusterRole{}
	for i := range stored.Items {
		have[stored.Items[i].Name] = &stored.Items[i]
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(seedingAtOnce)
	for _, role := range access.Roles() {
		old := have[role.Name]
		delete(have, role.Name)
		group.Go(func() error { return seedRole(ctx, api, role, old) })
	}
	for name := range have {
		group.Go(func() error {
			err := api.Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

const seedingAtOnce = 8

func seedRole(ctx context.Context, api typed.ClusterRoleInterface, role *access.Role, have *v1alpha1.ClusterRole) (err error) {
	spec := v1alpha1.ClusterRoleSpec{Description: role.Description}
	for _, permission := range role.Permissions() {
		spec.Permissions = append(spec.Permissions, string(permission))
	}
	switch {
	case have == nil:
		have, err = api.Create(ctx, &v1alpha1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Spec: spec}, metav1.CreateOptions{})
	case !apiequality.Semantic.DeepEqual(have.Spec, spec):
		have.Spec = spec
		have, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil || len(have.Status.Conditions) > 0 {
		return err
	}
	have.Status.Conditions = ready(have.Generation)
	_, err = api.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

func seedPools(ctx context.Context, client versioned.Interface, plan *placement.Plan) error {
	for _, pool := range plan.Pools {
		if err := seedPool(ctx, client, pool); err != nil {
			return err
		}
		for _, member := range pool.Members {
			if err := seedMember(ctx, client, plan.Domain, pool, member); err != nil {
				return err
			}
		}
	}
	return nil
}

func seedPool(ctx context.Context, client versioned.Interface, pool placement.Pool) error {
	api := client.CloudV1alpha1().Pools(pool.Namespace)
	spec := v1alpha1.PoolSpec{
		Type: pool.Type, DeploymentType: pool.DeploymentType,
		Sharing: &v1alpha1.PoolSharing{Namespaces: []string{"*"}},
	}
	have, err := api.Get(ctx, pool.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		have, err = api.Create(ctx, &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}, Spec: spec}, metav1.CreateOptions{})
	case err == nil && !apiequality.Semantic.DeepEqual(have.Spec, spec):
		have.Spec = spec
		have, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil || len(have.Status.Conditions) > 0 {
		return err
	}
	have.Status.Conditions = ready(have.Generation)
	_, err = api.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

func seedMember(ctx context.Context, client versioned.Interface, domain string, pool placement.Pool, member placement.Member) error {
	api := client.CloudV1alpha1().PoolMembers(pool.Namespace)
	spec := v1alpha1.PoolMemberSpec{
		PoolName: pool.Name, Type: pool.Type, Location: member.Location, Engine: member.Engine,
		Domains: []v1alpha1.PoolMemberDomain{{Name: domain, Type: "service"}},
	}
	have, err := api.Get(ctx, member.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		have, err = api.Create(ctx, &v1alpha1.PoolMember{ObjectMeta: metav1.ObjectMeta{Name: member.Name}, Spec: spec}, metav1.CreateOptions{})
	case err == nil && !apiequality.Semantic.DeepEqual(have.Spec, spec):
		have.Spec = spec
		have, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil || len(have.Status.Conditions) > 0 {
		return err
	}
	have.Status.DeploymentType = pool.DeploymentType
	have.Status.Conditions = ready(have.Generation)
	_, err = api.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

func ready(generation int64) []v1alpha1.Condition {
	return []v1alpha1.Condition{{
		Type: v1alpha1.ConditionReady, Status: v1alpha1.ConditionTrue, Reason: "Ready",
		LastTransitionTime: metav1.Now().Rfc3339Copy(), ObservedGeneration: generation,
	}}
}

// planOf turns the configured pools into a placement.
func planOf(cfg *config.Config) *placement.Plan {
	plan := &placement.Plan{
		Domain: cfg.Domain,
		Images: map[string]placement.Images{
			v1alpha1.ReleaseChannelRapid: {Broker: "freshet/broker:rapid", Storage: "freshet/storage:rapid"},
			v1alpha1.ReleaseChannelLTS:   {Broker: "freshet/broker:lts", Storage: "freshet/storage:lts"},
		},
	}
	for _, pool := range cfg.Pools {
		p := placement.Pool{Namespace: pool.Namespace, Name: pool.Name, Type: pool.Type, DeploymentType: "hosted"}
		for _, m := range pool.Members {
			p.Members = append(p.Members, placement.Member{Name: m.Name, Location: m.Location, Engine: m.Engine})
		}
		plan.Pools = append(plan.Pools, p)
	}
	return plan
}
