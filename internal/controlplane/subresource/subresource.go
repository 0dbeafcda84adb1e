// Package subresource implements subresources that are created on a named object and not stored: a
// token, new credentials, an invitation. It first authorizes the caller, then validates the
// request, then executes it. The packages tokens, rotation and invite supply these steps.
package subresource

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
)

// Call is an authorized and valid request.
type Call[T runtime.Object] struct {
	// Organization and Name identify the object.
	Organization, Name string
	Body               T
	DryRun             bool
}

// REST is the subresource; every field is required.
type REST[T runtime.Object] struct {
	Kind schema.GroupVersionKind
	// Resource is resource/subresource, for error messages.
	Resource string
	// NewBody returns a new object into which a body is decoded.
	NewBody func() T
	// Authorize returns an error if the caller may not make the request.
	Authorize func(ctx context.Context, organization, name string, body T) error
	// Validate validates the request and sets defaults.
	Validate func(body T) field.ErrorList
	// Execute executes the request. A dry run must have no effect.
	Execute func(ctx context.Context, call Call[T]) (runtime.Object, error)
}

var (
	_ rest.NamedCreater             = (*REST[runtime.Object])(nil)
	_ rest.GroupVersionKindProvider = (*REST[runtime.Object])(nil)
	_ rest.Storage                  = (*REST[runtime.Object])(nil)
)

// New implements rest.Storage.
func (r *REST[T]) New() runtime.Object { return r.NewBody() }

// Destroy implements rest.Storage; it has nothing to release.
func (*REST[T]) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *REST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return r.Kind }

// Create implements rest.NamedCreater.
func (r *REST[T]) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	body, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewBadRequest("body must be of kind " + r.Kind.Kind)
	}
	organization := request.NamespaceValue(ctx)
	if err := r.Authorize(ctx, organization, name, body); err != nil {
		return nil, apierrors.NewForbidden(v1alpha1.Resource(r.Resource), name, err)
	}
	if problems := r.Validate(body); len(problems) > 0 {
		return nil, apierrors.NewInvalid(r.Kind.GroupKind(), name, problems)
	}
	if validate != nil {
		if err := validate(ctx, obj); err != nil {
			return nil, err
		}
	}
	return r.Execute(ctx, Call[T]{organization, name, body, len(options.DryRun) > 0})
}
