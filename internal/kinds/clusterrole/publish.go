package clusterrole

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
	"freshet/internal/reconcile/conditions"
)

const writesAtOnce = 8

// Publish writes the roles of access, and removes those that it knows no more.
// It compares with what is stored, so that only a first start and an upgrade
// have something to write.
func (*Kind) Publish(ctx context.Context, client versioned.Interface) error {
	api := client.CloudV1alpha1().ClusterRoles()
	stored, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading the predefined roles: %w", err)
	}
	have := map[string]*object{}
	for i := range stored.Items {
		have[stored.Items[i].Name] = &stored.Items[i]
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for _, role := range access.Roles() {
		old := have[role.Name]
		delete(have, role.Name)
		group.Go(func() error { return publish(ctx, api, role, old) })
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
	if err := group.Wait(); err != nil {
		return fmt.Errorf("writing the predefined roles: %w", err)
	}
	return nil
}

func publish(ctx context.Context, api typed.ClusterRoleInterface, role *access.Role, have *object) (err error) {
	spec := v1alpha1.ClusterRoleSpec{Description: role.Description}
	for _, permission := range role.Permissions() {
		spec.Permissions = append(spec.Permissions, string(permission))
	}
	switch {
	case have == nil:
		have, err = api.Create(ctx, &object{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Spec: spec}, metav1.CreateOptions{})
	case !apiequality.Semantic.DeepEqual(have.Spec, spec):
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
