// Package subresource is the frame of a subresource that somebody creates on a named
// object and that is not stored: a token, new credentials, an invitation. Who may ask
// comes first, then what is asked, then it is done. The packages beside it fill it in.
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

// Call is one that is allowed and valid.
type Call[T runtime.Object] struct {
	// Organization and Name are those of the object.
	Organization, Name string
	Asked              T
	DryRun             bool
}

// REST is the subresource; every field is required.
type REST[T runtime.Object] struct {
	Kind schema.GroupVersionKind
	// Resource is resource/subresource, for refusals.
	Resource string
	// Empty makes what a body is read into.
	Empty func() T
	// Authorize refuses who may not ask.
	Authorize func(ctx context.Context, organization, name string, asked T) error
	// Check refuses what cannot be, and fills in what is left open.
	Check func(asked T) field.ErrorList
	// Do does it. Nothing may happen in a dry run.
	Do func(ctx context.Context, call Call[T]) (runtime.Object, error)
}

var (
	_ rest.NamedCreater             = (*REST[runtime.Object])(nil)
	_ rest.GroupVersionKindProvider = (*REST[runtime.Object])(nil)
	_ rest.Storage                  = (*REST[runtime.Object])(nil)
)

// New implements rest.Storage.
func (r *REST[T]) New() runtime.Object { return r.Empty() }

// Destroy implements rest.Storage; there is nothing to let go of.
func (*REST[T]) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *REST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return r.Kind }

// Create implements rest.NamedCreater.
func (r *REST[T]) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	asked, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be of the kind " + r.Kind.Kind)
	}
	organization := request.NamespaceValue(ctx)
	if err := r.Authorize(ctx, organization, name, asked); err != nil {
		return nil, apierrors.NewForbidden(v1alpha1.Resource(r.Resource), name, err)
	}
	if problems := r.Check(asked); len(problems) > 0 {
		return nil, apierrors.NewInvalid(r.Kind.GroupKind(), name, problems)
	}
	if validate != nil {
		if err := validate(ctx, obj); err != nil {
			return nil, err
		}
	}
	return r.Do(ctx, Call[T]{organization, name, asked, len(options.DryRun) > 0})
}
