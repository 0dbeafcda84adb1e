package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/budget"
)

// Authorized is a kind's main resource, restricted to the objects that the caller may access.
type Authorized[T Object] struct {
	*REST[T]
	auth authorization[T]
}

// Get reads one object.
func (g *Authorized[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := g.REST.Get(ctx, name, options)
	if err := g.auth.checkRead(ctx, "get", name, out, err); err != nil {
		return nil, err
	}
	return out, nil
}

// Create creates an object.
func (g *Authorized[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	var reserved reservation
	defer reserved.release()
	return g.REST.Create(ctx, obj, g.admitCreate(validate, &reserved), options)
}

// Update replaces, patches or applies an object.
func (g *Authorized[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	var reserved reservation
	defer reserved.release()
	out, created, err := g.REST.Update(ctx, name, authorizedInfo[T]{info, g.auth},
		g.admitCreate(createValidation, &reserved), g.admitUpdate(updateValidation), forceAllowCreate, options)
	if err != nil {
		return nil, false, g.auth.hideMissing(ctx, "update", name, err)
	}
	return out, created, nil
}

// Delete deletes an object.
func (g *Authorized[T]) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	out, deleted, err := g.REST.Delete(ctx, name, func(ctx context.Context, obj runtime.Object) error {
		if object, ok := obj.(T); ok {
			if err := g.auth.check(ctx, "delete", object); err != nil {
				return err
			}
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}, options)
	if err != nil {
		return nil, false, g.auth.hideMissing(ctx, "delete", name, err)
	}
	return out, deleted, nil
}

// admitCreate calls the authorizer, the kind's Admitter and its Limiter before next, the API
// machinery's validation.
func (g *Authorized[T]) admitCreate(next rest.ValidateObjectFunc, reserved *reservation) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if object, ok := obj.(T); ok {
			var none T
			if err := g.auth.check(ctx, "create", object); err != nil {
				return err
			}
			if err := g.auth.checkBlocking(ctx, object, nil); err != nil {
				return err
			}
			if err := g.admit(ctx, object, none); err != nil {
				return err
			}
			if err := g.reserve(ctx, object, reserved); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj)
	}
}

// admitUpdate calls the authorizer and the kind's Admitter before next, the API machinery's
// validation.
func (g *Authorized[T]) admitUpdate(next rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		object, isObject := obj.(T)
		before, wasObject := old.(T)
		if isObject && wasObject {
			budget.Essential(ctx, g.kind.isRemoval(object, before))
			if err := g.auth.checkOwners(ctx, object, before); err != nil {
				return err
			}
			if err := g.admit(ctx, object, before); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj, old)
	}
}

// isRemoval reports whether a change removes something and must therefore succeed even if the store
// is full: the last steps of a deletion, and changes that the kind classifies as a revocation.
func (k *kind[T]) isRemoval(object, before T) bool {
	if before.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) < len(before.GetFinalizers()) {
		return true
	}
	return k.Revoker != nil && k.Revoker.Revokes(object, before)
}

func (g *Authorized[T]) admit(ctx context.Context, object, old T) error {
	if g.kind.Admitter == nil {
		return nil
	}
	if err := g.kind.Admitter.Admit(ctx, object, old); err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource(g.kind.info.Plural), object.GetName(), err)
	}
	return nil
}

// authorizedInfo checks the permission on the stored object before any of its content is used. It
// then exposes no more than a read would, because a JSON patch can copy one field to another, and
// with it a value that the caller may not see. The hidden fields are not lost, because the status
// is carried over from the stored object.
type authorizedInfo[T Object] struct {
	rest.UpdatedObjectInfo
	auth authorization[T]
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i authorizedInfo[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if object, ok := old.(T); ok && object.GetUID() != "" { // not a new object
		if err := i.auth.check(ctx, "update", object); err != nil {
			return nil, err
		}
	}
	return i.UpdatedObjectInfo.UpdatedObject(ctx, i.auth.kind.redact(ctx, old))
}

// List returns the objects that the caller may see and omits the others. A page of a limited list
// can therefore contain fewer items than the limit and still have a continue token, which clients
// have to expect (docs/spec/resources.md#list-parameters).
func (g *Authorized[T]) List(ctx context.Context, options *metav1internal.ListOptions) (runtime.Object, error) {
	out, err := g.REST.List(ctx, withNewestVersion(options))
	if err != nil {
		return nil, err
	}
	filter, ok := g.auth.filter(ctx, "list")
	if ok && filter == nil {
		return out, nil
	}
	return g.filterList(out, filter, ok)
}

// filterList builds a new list, because the items may be shared with the watch cache.
func (g *Authorized[T]) filterList(list runtime.Object, filter Filter, some bool) (runtime.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	kept := items[:0]
	for _, obj := range items {
		if object, ok := obj.(T); ok && some && filter(g.kind.scope(object)) {
			kept = append(kept, obj)
		}
	}
	return g.listOf(list, kept, true)
}

// AuthorizedStatus is a kind's status subresource, restricted to the objects that the caller may
// access.
type AuthorizedStatus[T Object] struct {
	*StatusREST[T]
	auth authorization[T]
}

// Get reads the object.
func (g *AuthorizedStatus[T]) Get(ctx context.Context, name string,
	options *metav1.GetOptions,
) (runtime.Object, error) {
	out, err := g.StatusREST.Get(ctx, name, options)
	if err := g.auth.checkRead(ctx, "get", name, out, err); err != nil {
		return nil, err
	}
	return out, nil
}

// Update changes the object's status.
func (g *AuthorizedStatus[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	out, created, err := g.StatusREST.Update(ctx, name, authorizedInfo[T]{info, g.auth},
		createValidation, updateValidation, forceAllowCreate, options)
	if err != nil {
		return nil, false, g.auth.hideMissing(ctx, "update", name, err)
	}
	return out, created, nil
}
