// Package serviceaccountbinding describes the kind ServiceAccountBinding to the
// resource API; controllers/binding says when one is ready.
package serviceaccountbinding

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
	"freshet/internal/resources/validation"
)

// Finalizer holds a binding until it is undone.
const Finalizer = "serviceaccountbinding.finalizers.cloud.vendor.io"

const maxRoles = 64

type object = v1alpha1.ServiceAccountBinding

// Definition describes the kind.
func Definition() registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "ServiceAccountBinding", Plural: "serviceaccountbindings", Singular: "serviceaccountbinding",
		ShortNames: []string{"sab"},
		Finalizer:  Finalizer,
		Owner:      "ServiceAccount",
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.ServiceAccountBindingList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
		Validate:   validate,
		ValidateUpdate: func(_ context.Context, o, old *object) field.ErrorList {
			return validation.Immutable(field.NewPath("spec"), o.Spec, old.Spec)
		},
		Scope: func(o *object) access.Scope {
			return access.Scope{Organization: o.Namespace, ServiceAccount: o.Spec.ServiceAccountName}
		},
		Fields: func(o *object) fields.Set {
			return fields.Set{"spec.serviceAccountName": o.Spec.ServiceAccountName}
		},
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Account", Description: "The service account.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.ServiceAccountName },
			},
			printers.Column{
				Name: "Member", Description: "The pool member.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.PoolMemberRef.Name },
			},
		),
	})
}

func validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Required(spec.Child("serviceAccountName"), o.Spec.ServiceAccountName)
	errs = append(errs, validation.Name(spec.Child("serviceAccountName"), o.Spec.ServiceAccountName)...)
	errs = append(errs, validation.Reference(spec.Child("poolMemberRef"), o.Spec.PoolMemberRef)...)
	if n := len(o.Spec.AWSAssumeRoleARNs); n > maxRoles {
		errs = append(errs, field.TooMany(spec.Child("awsAssumeRoleARNs"), n, maxRoles))
	}
	return errs
}
