// Package serviceaccount describes the kind ServiceAccount to the resource API.
// Its credentials are made by controllers/serviceaccount.
package serviceaccount

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
	"freshet/internal/resources/validation"
)

// Finalizer holds an account until its tokens, keys and bindings are dead.
const Finalizer = "serviceaccount.finalizers.cloud.vendor.io"

type object = v1alpha1.ServiceAccount

// Guard decides who may make and end an account and who may see its secret.
type Guard struct {
	MayCreate func(ctx context.Context, o *object) error
	MayDelete func(ctx context.Context, o *object) error
	Redact    func(ctx context.Context, o *object) *object
}

// Definition describes the kind.
func Definition(guard Guard, observer registry.Observer[*object]) registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "ServiceAccount", Plural: "serviceaccounts", Singular: "serviceaccount",
		ShortNames: []string{"sa"},
		Finalizer:  Finalizer,
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.ServiceAccountList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
		Validate: func(_ context.Context, o *object) field.ErrorList {
			return validation.OneOf(rolePath(), role(o), v1alpha1.ServiceAccountRoleAdmin)
		},
		Admit: func(ctx context.Context, o, old *object) error {
			if old != nil || guard.MayCreate == nil {
				return nil
			}
			return guard.MayCreate(ctx, o)
		},
		ValidateDelete: func(ctx context.Context, o *object, _ *metav1.DeleteOptions) error {
			if guard.MayDelete == nil {
				return nil
			}
			if err := guard.MayDelete(ctx, o); err != nil {
				return apierrors.NewForbidden(v1alpha1.Resource("serviceaccounts"), o.Name, err)
			}
			return nil
		},
		Scope: func(o *object) access.Scope {
			return access.Scope{Organization: o.Namespace, ServiceAccount: o.Name}
		},
		ValidateUpdate: func(_ context.Context, o, old *object) field.ErrorList {
			// Who may rule the organization is decided once, at creation.
			return validation.Immutable(rolePath(), role(o), role(old))
		},
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Admin", Type: "boolean", Description: "Whether the account rules its organization.",
				Value: func(o runtime.Object) any { return IsAdmin(o.(*object)) },
			},
		),
		Redact:   guard.Redact,
		Observer: observer,
	})
}

// IsAdmin says whether the account rules its organization.
func IsAdmin(o *v1alpha1.ServiceAccount) bool { return role(o) == v1alpha1.ServiceAccountRoleAdmin }

func role(o *object) string { return o.Annotations[v1alpha1.AnnotationServiceAccountRole] }

func rolePath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationServiceAccountRole)
}
