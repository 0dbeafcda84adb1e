package clusterrole

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity/access"
)

const maxConcurrentWrites = 8

// Publish writes the roles of package access, and deletes stored roles that no longer exist there.
// It compares with the stored roles, so that only the first start and upgrades write.
func (*Kind) Publish(ctx context.Context, client versioned.Interface) error {
	api := client.CloudV1alpha1().ClusterRoles()
	stored, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading the predefined roles: %w", err)
	}
	existing := map[string]*object{}
	for i := range stored.Items {
		existing[stored.Items[i].Name] = &stored.Items[i]
	}
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(maxConcurrentWrites)
	for _, role := range access.Roles() {
		old := existing[role.Name]
		delete(existing, role.Name)
		writes.Go(func() error { return publish(ctx, api, role, old) })
	}
	for name := range existing {
		writes.Go(func() error {
			err := api.Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := writes.Wait(); err != nil {
		return fmt.Errorf("writing the predefined roles: %w", err)
	}
	return nil
}

func publish(ctx context.Context, api typed.ClusterRoleInterface, role *access.Role, existing *object) error {
	want := &object{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		Spec:       v1alpha1.ClusterRoleSpec{Description: role.Description},
	}
	for _, permission := range role.Permissions() {
		want.Spec.Permissions = append(want.Spec.Permissions, string(permission))
	}
	return reconcile.PublishExisting(ctx, api, published{want}, existing, existing != nil)
}

// published is a predefined role.
type published struct{ want *object }

// Want implements reconcile.Published.
func (p published) Want() *object { return p.want }

// Sync implements reconcile.Published.
func (p published) Sync(stored *object) bool { return reconcile.Replace(&stored.Spec, p.want.Spec) }

// Describe implements reconcile.Published.
func (published) Describe(stored *object) bool {
	return reconcile.Describe(&stored.Status.Conditions, stored.Generation)
}
