// Package subresource implements subresources that are created on a named object and not stored: a
// token, new credentials, an invitation. It first authorizes the caller, then validates the request,
// then executes it. The kinds supply these steps as a Handler; a store.Subresource connects them
// with a kind. schema.go describes bodies in the OpenAPI documents.
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

// Handler executes the calls of one subresource; T is the type of the body.
type Handler[T runtime.Object] interface {
	// Authorize returns an error if the caller may not make the request.
	Authorize(ctx context.Context, organization, name string, body T) error
	// Validate validates the request and sets defaults.
	Validate(body T) field.ErrorList
	// Execute executes the request. A dry run must have no effect.
	Execute(ctx context.Context, call Call[T]) (runtime.Object, error)
}

// Body is a pointer to the type B of a body.
type Body[B any] interface {
	*B
	runtime.Object
}

// New creates the storage of a subresource whose body is of this kind. resource is
// resource/subresource, for error messages.
func New[B any, T Body[B]](kind schema.GroupVersionKind, resource string, handler Handler[T]) rest.Storage {
	return &storage[B, T]{kind, resource, handler}
}

type storage[B any, T Body[B]] struct {
	kind     schema.GroupVersionKind
	resource string
	handler  Handler[T]
}

var (
	_ rest.NamedCreater             = (*storage[metav1.Status, *metav1.Status])(nil)
	_ rest.GroupVersionKindProvider = (*storage[metav1.Status, *metav1.Status])(nil)
	_ rest.Storage                  = (*storage[metav1.Status, *metav1.Status])(nil)
)

// New implements rest.Storage.
func (*storage[B, T]) New() runtime.Object { return T(new(B)) }

// Destroy implements rest.Storage; it has nothing to release.
func (*storage[B, T]) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (s *storage[B, T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return s.kind }

// Create implements rest.NamedCreater.
func (s *storage[B, T]) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	body, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewBadRequest("body must be of kind " + s.kind.Kind)
	}
	organization := request.NamespaceValue(ctx)
	if err := s.handler.Authorize(ctx, organization, name, body); err != nil {
		return nil, apierrors.NewForbidden(v1alpha1.Resource(s.resource), name, err)
	}
	if problems := s.handler.Validate(body); len(problems) > 0 {
		return nil, apierrors.NewInvalid(s.kind.GroupKind(), name, problems)
	}
	if validate != nil {
		if err := validate(ctx, obj); err != nil {
			return nil, err
		}
	}
	return s.handler.Execute(ctx, Call[T]{organization, name, body, len(options.DryRun) > 0})
}
