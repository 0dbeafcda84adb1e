package messaginginstance

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/store"
	"freshet/internal/controlplane/validation"
)

const (
	defaultTokenLifetime = 24 * 60 * 60
	maxTokenLifetime     = 30 * 24 * 60 * 60
)

// Default implements store.Defaulter.
func (*Kind) Default(o *object) {
	o.Spec.AvailabilityMode = cmp.Or(o.Spec.AvailabilityMode, v1alpha1.AvailabilityZonal)
	o.Spec.Type = cmp.Or(o.Spec.Type, v1alpha1.InstanceStandard)
	if o.Spec.Auth == nil || (o.Spec.Auth.APIKey == nil && o.Spec.Auth.OAuth2 == nil) {
		o.Spec.Auth = &v1alpha1.InstanceAuth{APIKey: &v1alpha1.InstanceAuthAPIKey{}}
	}
	if oauth := o.Spec.Auth.OAuth2; oauth != nil && oauth.TokenLifetimeSeconds == 0 {
		oauth.TokenLifetimeSeconds = defaultTokenLifetime
	}
}

// PrepareCreate implements store.Preparer. It completes the reference to the pool.
func (k *Kind) PrepareCreate(_ context.Context, o *object) {
	switch ref := o.Spec.PoolRef; {
	case ref == nil:
		o.Spec.PoolRef = k.plan.DefaultPool()
	case ref.Namespace == "":
		if pool, ok := k.plan.Pool(ref); ok {
			ref.Namespace = pool.Namespace
		}
	}
}

// PrepareUpdate implements store.Preparer. It restores the parts of the pool reference that
// creation added and a replace omitted.
func (*Kind) PrepareUpdate(_ context.Context, o, old *object) {
	ref, before := o.Spec.PoolRef, old.Spec.PoolRef
	if ref == nil || (before != nil && ref.Namespace == "" && ref.Name == before.Name) {
		o.Spec.PoolRef = before
	}
}

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.OneOf(spec.Child("availabilityMode"), o.Spec.AvailabilityMode,
		v1alpha1.AvailabilityZonal, v1alpha1.AvailabilityRegional)
	errs = append(errs, validation.OneOf(spec.Child("type"), o.Spec.Type,
		v1alpha1.InstanceStandard, v1alpha1.InstanceDedicated, v1alpha1.InstanceServerless,
		v1alpha1.InstanceBYOC, v1alpha1.InstanceBYOCPro, v1alpha1.InstanceFree)...)
	if o.Spec.Type == v1alpha1.InstanceFree && o.Spec.AvailabilityMode != v1alpha1.AvailabilityZonal {
		errs = append(errs, field.Invalid(spec.Child("availabilityMode"), o.Spec.AvailabilityMode,
			"must be zonal for a free instance"))
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

// ValidateUpdate implements store.UpdateValidator.
func (*Kind) ValidateUpdate(_ context.Context, o, old *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Immutable(spec.Child("availabilityMode"), o.Spec.AvailabilityMode, old.Spec.AvailabilityMode)
	errs = append(errs, validation.Immutable(spec.Child("poolRef"), o.Spec.PoolRef, old.Spec.PoolRef)...)
	return append(errs, validation.Immutable(spec.Child("type"), o.Spec.Type, old.Spec.Type)...)
}

// ValidateDelete implements store.DeleteValidator. It rejects the deletion of an instance with
// clusters unless these are deleted first (docs/spec/resources.md#r8), and honours the protection
// annotation.
func (k *Kind) ValidateDelete(ctx context.Context, o *object, options *metav1.DeleteOptions) error {
	resource := v1alpha1.Resource("messaginginstances")
	if store.Protected(o) {
		return store.ProtectedError(resource, o.Name)
	}
	names, protected, err := k.Clusters.NamesWhere(ctx, o.Namespace, "spec.instanceName", o.Name)
	if err != nil {
		return err
	}
	if len(protected) > 0 {
		return apierrors.NewConflict(resource, o.Name, fmt.Errorf(
			"instance has clusters that are protected: %s; set their annotation %s to \"false\" first",
			strings.Join(protected, ", "), v1alpha1.AnnotationDestroyProtected))
	}
	if p := options.PropagationPolicy; len(names) == 0 || (p != nil && *p == metav1.DeletePropagationForeground) {
		return nil
	}
	return apierrors.NewConflict(resource, o.Name, fmt.Errorf(
		"instance still has clusters: %s; delete them first, or delete the instance with "+
			"propagationPolicy=Foreground", strings.Join(names, ", ")))
}
