// Package messaginginstance describes the kind MessagingInstance to the
// resource API; controllers/instance makes it ready.
package messaginginstance

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/resources/placement"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
	"freshet/internal/resources/validation"
)

// Finalizer holds an instance until its clusters are gone.
const Finalizer = "messaginginstance.finalizers.cloud.vendor.io"

const (
	defaultTokenLifetime = 24 * 60 * 60
	maxTokenLifetime     = 30 * 24 * 60 * 60
)

type object = v1alpha1.MessagingInstance

// Clusters names the clusters of an instance, to refuse its deletion; protected
// are those of them that may not be deleted.
type Clusters func(ctx context.Context, namespace, instance string) (names, protected []string, err error)

// Definition describes the kind.
func Definition(plan *placement.Plan, clusters Clusters, observer registry.Observer[*object]) registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "MessagingInstance", Plural: "messaginginstances", Singular: "messaginginstance",
		ShortNames: []string{"mi"},
		Finalizer:  Finalizer,
		New:        func() *object { return &object{} },
		NewList:    func() runtime.Object { return &v1alpha1.MessagingInstanceList{} },
		Spec:       func(o *object) any { return &o.Spec },
		Status:     func(o *object) any { return &o.Status },
		Default:    setDefaults,
		PrepareCreate: func(_ context.Context, o *object) {
			choosePool(o, plan)
		},
		PrepareUpdate: func(_ context.Context, o, old *object) {
			keepPool(o, old)
		},
		Validate:       validate,
		ValidateUpdate: validateUpdate,
		ValidateDelete: func(ctx context.Context, o *object, options *metav1.DeleteOptions) error {
			return validateDelete(ctx, o, options, clusters)
		},
		Scope: func(o *object) access.Scope {
			return access.Scope{Organization: o.Namespace, Instance: o.Name}
		},
		Fields: func(o *object) fields.Set {
			return fields.Set{"spec.type": o.Spec.Type}
		},
		Columns: append(
			printers.Conditions(func(o runtime.Object) []v1alpha1.Condition { return o.(*object).Status.Conditions }),
			printers.Column{
				Name: "Type", Description: "Type of the instance.",
				Value: func(o runtime.Object) any { return o.(*object).Spec.Type },
			},
			printers.Column{
				Name: "Mode", Description: "Availability mode.", Wide: true,
				Value: func(o runtime.Object) any { return o.(*object).Spec.AvailabilityMode },
			},
		),
		Observer: observer,
	})
}

func setDefaults(o *object) {
	if o.Spec.AvailabilityMode == "" {
		o.Spec.AvailabilityMode = v1alpha1.AvailabilityZonal
	}
	if o.Spec.Type == "" {
		o.Spec.Type = v1alpha1.InstanceStandard
	}
	if o.Spec.Auth == nil || (o.Spec.Auth.APIKey == nil && o.Spec.Auth.OAuth2 == nil) {
		o.Spec.Auth = &v1alpha1.InstanceAuth{APIKey: &v1alpha1.InstanceAuthAPIKey{}}
	}
	if oauth := o.Spec.Auth.OAuth2; oauth != nil && oauth.TokenLifetimeSeconds == 0 {
		oauth.TokenLifetimeSeconds = defaultTokenLifetime
	}
}

// choosePool completes the reference to the pool.
func choosePool(o *object, plan *placement.Plan) {
	switch ref := o.Spec.PoolRef; {
	case ref == nil:
		o.Spec.PoolRef = plan.DefaultPool()
	case ref.Namespace == "":
		if pool, ok := plan.Pool(ref); ok {
			ref.Namespace = pool.Namespace
		}
	}
}

// keepPool puts back what choosePool added and a replace left out.
func keepPool(o, old *object) {
	ref, before := o.Spec.PoolRef, old.Spec.PoolRef
	if ref == nil || (before != nil && ref.Namespace == "" && ref.Name == before.Name) {
		o.Spec.PoolRef = before
	}
}

func validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.OneOf(spec.Child("availabilityMode"), o.Spec.AvailabilityMode,
		v1alpha1.AvailabilityZonal, v1alpha1.AvailabilityRegional)
	errs = append(errs, validation.OneOf(spec.Child("type"), o.Spec.Type,
		v1alpha1.InstanceStandard, v1alpha1.InstanceDedicated, v1alpha1.InstanceServerless,
		v1alpha1.InstanceBYOC, v1alpha1.InstanceBYOCPro, v1alpha1.InstanceFree)...)
	if o.Spec.Type == v1alpha1.InstanceFree && o.Spec.AvailabilityMode != v1alpha1.AvailabilityZonal {
		errs = append(errs, field.Invalid(spec.Child("availabilityMode"), o.Spec.AvailabilityMode, "a free instance must be zonal"))
	}
	if o.Spec.PoolRef != nil {
		errs = append(errs, validation.Reference(spec.Child("poolRef"), *o.Spec.PoolRef)...)
	}
	if auth := o.Spec.Auth; auth != nil && auth.OAuth2 != nil {
		p := spec.Child("auth", "oauth2", "tokenLifetimeSeconds")
		errs = append(errs, validation.Between(p, int64(auth.OAuth2.TokenLifetimeSeconds), 0, maxTokenLifetime)...)
	}
	return errs
}

func validateUpdate(_ context.Context, o, old *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Immutable(spec.Child("availabilityMode"), o.Spec.AvailabilityMode, old.Spec.AvailabilityMode)
	errs = append(errs, validation.Immutable(spec.Child("poolRef"), o.Spec.PoolRef, old.Spec.PoolRef)...)
	return append(errs, validation.Immutable(spec.Child("type"), o.Spec.Type, old.Spec.Type)...)
}

// validateDelete refuses to pull an instance from under its clusters, unless
// they are to go first (R8), and honours the protection annotation.
func validateDelete(ctx context.Context, o *object, options *metav1.DeleteOptions, clusters Clusters) error {
	resource := v1alpha1.Resource("messaginginstances")
	if registry.Protected(o) {
		return registry.ProtectedError(resource, o.Name)
	}
	names, protected, err := clusters(ctx, o.Namespace, o.Name)
	if err != nil {
		return err
	}
	if len(protected) > 0 {
		return apierrors.NewConflict(resource, o.Name, fmt.Errorf(
			"the instance has clusters that are protected: %s; set their annotation %s to \"false\" first",
			strings.Join(protected, ", "), v1alpha1.AnnotationDestroyProtected))
	}
	if p := options.PropagationPolicy; len(names) == 0 || (p != nil && *p == metav1.DeletePropagationForeground) {
		return nil
	}
	return apierrors.NewConflict(resource, o.Name, fmt.Errorf(
		"the instance still has clusters: %s; delete them first, or delete the instance with propagationPolicy=Foreground",
		strings.Join(names, ", ")))
}
