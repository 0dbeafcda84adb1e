package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/internal/identity/access"
)

// Authorizer decides about single objects, where the one in front of the
// machinery can only decide about paths: a caller's rights may end within a
// collection, and on which side of that an object is stands in the object.
type Authorizer interface {
	// Authorize returns why the caller may not do verb to an object; nil when they may.
	Authorize(ctx context.Context, resource, verb, name string, scope access.Scope) error
	// AuthorizeBlocking returns why the caller may not block the deletion of an
	// owner; nil when they may.
	AuthorizeBlocking(ctx context.Context, namespace string, owner metav1.OwnerReference) error
	// Filter says which objects of a collection the caller may do verb to; a nil
	// one allows everything. ok is false when nothing is allowed, or when the
	// caller's credential has ended.
	Filter(ctx context.Context, resource, verb, namespace string) (filter Filter, ok bool)
}

// Filter allows objects by where they lie.
type Filter func(access.Scope) bool

// scope is where an object lies.
func (k *kind[T]) scope(object T) access.Scope {
	if k.locator != nil {
		return k.locator.Scope(object)
	}
	return access.Scope{Organization: object.GetNamespace()}
}

// scopeOfName is all that is known of an object that does not exist.
func (k *kind[T]) scopeOfName(namespace, name string) access.Scope {
	if k.locator == nil {
		return access.Scope{Organization: namespace}
	}
	object := k.New()
	object.SetNamespace(namespace)
	object.SetName(name)
	return k.scope(object)
}

// authorization asks about the objects of one kind. Without an authorizer, and
// for what is everybody's to read, all is allowed.
type authorization[T Object] struct {
	kind       *kind[T]
	authorizer Authorizer
}

func (a authorization[T]) allowsAll() bool {
	return a.authorizer == nil || a.kind.info.ClusterScoped
}

func (a authorization[T]) check(ctx context.Context, verb string, object T) error {
	if a.allowsAll() {
		return nil
	}
	return a.authorizer.Authorize(ctx, a.kind.info.Plural, verb, object.GetName(), a.kind.scope(object))
}

// checkFound asks about what a call found. Whoever may not know whether there is
// something of that name gets one answer, whether there is or not.
func (a authorization[T]) checkFound(ctx context.Context, verb, name string, obj runtime.Object, err error) error {
	if err != nil {
		return a.unlessHidden(ctx, verb, name, err)
	}
	if object, ok := obj.(T); ok {
		return a.check(ctx, verb, object)
	}
	return nil
}

func (a authorization[T]) unlessHidden(ctx context.Context, verb, name string, err error) error {
	if a.allowsAll() || !apierrors.IsNotFound(err) {
		return err
	}
	scope := a.kind.scopeOfName(request.NamespaceValue(ctx), name)
	if denied := a.authorizer.Authorize(ctx, a.kind.info.Plural, verb, name, scope); denied != nil {
		return denied
	}
	return err
}

func (a authorization[T]) filter(ctx context.Context, verb string) (filter Filter, ok bool) {
	if a.allowsAll() {
		return nil, true
	}
	return a.authorizer.Filter(ctx, a.kind.info.Plural, verb, request.NamespaceValue(ctx))
}
