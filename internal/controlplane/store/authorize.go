package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/internal/identity/access"
)

// Authorizer decides about single objects. The authorizer in front of the API machinery can only
// decide about paths, but a caller's permissions may cover only part of a collection, and whether
// an object belongs to that part depends on the object's content.
type Authorizer interface {
	// Authorize returns nil if the caller may do verb to an object, otherwise why not.
	Authorize(ctx context.Context, resource, verb, name string, scope access.Scope) error
	// AuthorizeBlocking returns nil if the caller may block the deletion of an owner, otherwise why
	// not.
	AuthorizeBlocking(ctx context.Context, namespace string, owner metav1.OwnerReference) error
	// Filter returns which objects of a collection the caller may do verb to; a nil filter allows
	// all. ok is false if no object is allowed, or if the caller's credential has expired.
	Filter(ctx context.Context, resource, verb, namespace string) (filter Filter, ok bool)
}

// Filter reports whether objects of a scope are allowed.
type Filter func(access.Scope) bool

// scope returns the scope of an object for permissions.
func (k *kind[T]) scope(object T) access.Scope {
	if k.Locator != nil {
		return k.Locator.Scope(object)
	}
	return access.Scope{Organization: object.GetNamespace()}
}

// scopeOfName returns the scope of an object that does not exist, as far as its name determines it.
func (k *kind[T]) scopeOfName(namespace, name string) access.Scope {
	if k.Locator == nil {
		return access.Scope{Organization: namespace}
	}
	object := k.New()
	object.SetNamespace(namespace)
	object.SetName(name)
	return k.scope(object)
}

// authorization checks permissions for the objects of one kind. It allows everything without an
// authorizer, and for cluster-scoped kinds, which every caller may read.
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

// checkRead checks the result of a read. A caller without permission gets the same error for an
// object that exists and one that does not.
func (a authorization[T]) checkRead(ctx context.Context, verb, name string, obj runtime.Object, err error) error {
	if err != nil {
		return a.hideMissing(ctx, verb, name, err)
	}
	if object, ok := obj.(T); ok {
		return a.check(ctx, verb, object)
	}
	return nil
}

func (a authorization[T]) hideMissing(ctx context.Context, verb, name string, err error) error {
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
