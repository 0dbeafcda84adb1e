package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
)

// Guarded is a kind's main resource behind the gate.
type Guarded[T Object] struct {
	*REST[T]
	door doorman[T]
}

// Get reads one object.
func (g *Guarded[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := g.REST.Get(ctx, name, options)
	if err := g.door.answer(ctx, "get", name, out, err); err != nil {
		return nil, err
	}
	return out, nil
}

// Create makes an object.
func (g *Guarded[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return g.REST.Create(ctx, obj, g.admitCreate(validate, len(options.DryRun) > 0), options)
}

// Update replaces, patches and applies.
func (g *Guarded[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	out, created, err := g.REST.Update(ctx, name, guardedInfo[T]{info, g.door},
		g.admitCreate(createValidation, len(options.DryRun) > 0), g.admitUpdate(updateValidation, len(options.DryRun) > 0), forceAllowCreate, options)
	if err != nil {
		return nil, false, g.door.unlessHidden(ctx, "update", name, err)
	}
	return out, created, nil
}

// Delete deletes.
func (g *Guarded[T]) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	out, deleted, err := g.REST.Delete(ctx, name, func(ctx context.Context, obj runtime.Object) error {
		if object, ok := obj.(T); ok {
			if err := g.door.check(ctx, "delete", object); err != nil {
				return err
			}
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}, options)
	if err != nil {
		return nil, false, g.door.unlessHidden(ctx, "delete", name, err)
	}
	return out, deleted, nil
}

// admitCreate puts the gate and the kind's last word in front of the machinery's.
func (g *Guarded[T]) admitCreate(next rest.ValidateObjectFunc, dryRun bool) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if object, ok := obj.(T); ok {
			var none T
			if err := g.door.check(ctx, "create", object); err != nil {
				return err
			}
			if err := g.door.checkBlocking(ctx, object, nil); err != nil {
				return err
			}
			if err := g.admit(ctx, object, none); err != nil {
				return err
			}
		}
		if next != nil {
			if err := next(ctx, obj); err != nil {
				return err
			}
		}
		g.kind.expect(obj, dryRun)
		return nil
	}
}

func (g *Guarded[T]) admitUpdate(next rest.ValidateObjectUpdateFunc, dryRun bool) rest.ValidateObjectUpdateFunc {
	return g.kind.expectUpdate(func(ctx context.Context, obj, old runtime.Object) error {
		object, isObject := obj.(T)
		before, wasObject := old.(T)
		if isObject && wasObject {
			if err := g.door.checkOwners(ctx, object, before); err != nil {
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
	}, dryRun)
}

// expect tells of an object that is about to be stored.
func (k *Kind[T]) expect(obj runtime.Object, dryRun bool) {
	if object, ok := obj.(T); ok && !dryRun && k.Expected != nil {
		k.Expected(object)
	}
}

func (k *Kind[T]) expectUpdate(next rest.ValidateObjectUpdateFunc, dryRun bool) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if next != nil {
			if err := next(ctx, obj, old); err != nil {
				return err
			}
		}
		k.expect(obj, dryRun)
		return nil
	}
}

func (g *Guarded[T]) admit(ctx context.Context, object, old T) error {
	if g.kind.Admit == nil {
		return nil
	}
	if err := g.kind.Admit(ctx, object, old); err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource(g.kind.Plural), object.GetName(), err)
	}
	return nil
}

// guardedInfo asks about the stored object before it tells anything of it, and
// then tells no more than reading would: a JSON patch can copy from one field to
// another, and out of one that the caller may not see. What is hidden from the
// change is not lost by it, for the status is carried over from what is stored.
type guardedInfo[T Object] struct {
	rest.UpdatedObjectInfo
	door doorman[T]
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i guardedInfo[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if object, ok := old.(T); ok && object.GetUID() != "" { // not one that is about to be created
		if err := i.door.check(ctx, "update", object); err != nil {
			return nil, err
		}
	}
	return i.UpdatedObjectInfo.UpdatedObject(ctx, i.door.kind.redact(ctx, old))
}

// List reads what the caller may see: the rest is left out as if it were not
// there. A page of a limited list may so hold fewer items than asked for, which
// clients have to expect (spec 1, limit), and goes on all the same.
func (g *Guarded[T]) List(ctx context.Context, options *metav1internal.ListOptions) (runtime.Object, error) {
	out, err := g.REST.List(ctx, limited(options))
	if err != nil {
		return nil, err
	}
	sieve, ok := g.door.sieve(ctx, "list")
	if ok && sieve == nil {
		return out, nil
	}
	return g.sift(out, sieve, ok)
}

// sift rebuilds a list: its items may be shared with the watch cache.
func (g *Guarded[T]) sift(list runtime.Object, sieve Sieve, some bool) (runtime.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	kept := items[:0]
	for _, obj := range items {
		if object, ok := obj.(T); ok && some && sieve(g.kind.place(object)) {
			kept = append(kept, obj)
		}
	}
	return g.listOf(list, kept, true)
}

// GuardedStatus is a kind's status subresource behind the gate.
type GuardedStatus[T Object] struct {
	*StatusREST[T]
	door doorman[T]
}

// Get reads the object.
func (g *GuardedStatus[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := g.StatusREST.Get(ctx, name, options)
	if err := g.door.answer(ctx, "get", name, out, err); err != nil {
		return nil, err
	}
	return out, nil
}

// Update changes the object's status.
func (g *GuardedStatus[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	out, created, err := g.StatusREST.Update(ctx, name, guardedInfo[T]{info, g.door},
		createValidation, g.kind.expectUpdate(updateValidation, len(options.DryRun) > 0), forceAllowCreate, options)
	if err != nil {
		return nil, false, g.door.unlessHidden(ctx, "update", name, err)
	}
	return out, created, nil
}
