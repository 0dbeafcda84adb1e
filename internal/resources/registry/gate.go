package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/internal/access"
)

// Gate decides about single objects, where the authorizer in front of the
// machinery can only decide about paths: a caller's rights may end within a
// collection, and on which side of that an object is stands in the object.
type Gate interface {
	// Check returns why the caller may not do verb to an object; nil when they may.
	Check(ctx context.Context, resource, verb, name string, scope access.Scope) error
	// CheckOwner returns why the caller may not stand in the way of an owner's
	// deletion; nil when they may.
	CheckOwner(ctx context.Context, namespace string, owner metav1.OwnerReference) error
	// Sieve says which objects of a collection the caller may do verb to; a nil
	// one lets everything through. ok is false when nothing gets through, or
	// when the caller's credential has ended.
	Sieve(ctx context.Context, resource, verb, namespace string) (sieve Sieve, ok bool)
}

// Sieve lets objects through by where they lie.
type Sieve func(access.Scope) bool

// place is where an object lies.
func (k *Kind[T]) place(object T) access.Scope {
	if k.Scope != nil {
		return k.Scope(object)
	}
	return access.Scope{Organization: object.GetNamespace()}
}

// placeOfName is all that is known of an object that does not exist.
func (k *Kind[T]) placeOfName(namespace, name string) access.Scope {
	object := k.New()
	object.SetNamespace(namespace)
	object.SetName(name)
	return k.place(object)
}

// Place implements Definition.
func (d *definition[T]) Place(ctx context.Context, namespace, name string) access.Scope {
	if object, ok := Lookup[T](ctx, d, namespace, name); ok {
		return d.kind.place(object)
	}
	return d.kind.placeOfName(namespace, name)
}

// doorman asks a kind's gate. Without a gate, and for what is everybody's to
// read, all may pass.
type doorman[T Object] struct {
	kind *Kind[T]
	gate Gate
}

func (d doorman[T]) open() bool { return d.gate == nil || d.kind.Cluster }

func (d doorman[T]) check(ctx context.Context, verb string, object T) error {
	if d.open() {
		return nil
	}
	return d.gate.Check(ctx, d.kind.Plural, verb, object.GetName(), d.kind.place(object))
}

// answer asks about what a call found. Whoever may not know whether there is
// something of that name gets one answer, whether there is or not.
func (d doorman[T]) answer(ctx context.Context, verb, name string, obj runtime.Object, err error) error {
	if err != nil {
		return d.unlessHidden(ctx, verb, name, err)
	}
	if object, ok := obj.(T); ok {
		return d.check(ctx, verb, object)
	}
	return nil
}

func (d doorman[T]) unlessHidden(ctx context.Context, verb, name string, err error) error {
	if d.open() || !apierrors.IsNotFound(err) {
		return err
	}
	scope := d.kind.placeOfName(request.NamespaceValue(ctx), name)
	if denied := d.gate.Check(ctx, d.kind.Plural, verb, name, scope); denied != nil {
		return denied
	}
	return err
}

func (d doorman[T]) sieve(ctx context.Context, verb string) (sieve Sieve, ok bool) {
	if d.open() {
		return nil, true
	}
	return d.gate.Sieve(ctx, d.kind.Plural, verb, request.NamespaceValue(ctx))
}
