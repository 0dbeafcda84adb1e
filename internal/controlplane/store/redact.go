package store

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"freshet/api/v1alpha1"
)

// redact removes the fields that the caller may not see from an object.
func (k *kind[T]) redact(ctx context.Context, obj runtime.Object) runtime.Object {
	object, ok := obj.(T)
	if !ok || k.Redacter == nil {
		return obj
	}
	return k.Redacter.Redact(ctx, object)
}

// redactList redacts every item. The items may be shared with the watch cache, so it builds a new
// list.
func (k *kind[T]) redactList(ctx context.Context, list runtime.Object) runtime.Object {
	if k.Redacter == nil {
		return list
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return list
	}
	for i, obj := range items {
		items[i] = k.redact(ctx, obj)
	}
	out := k.NewList()
	from, fromErr := meta.ListAccessor(list)
	to, toErr := meta.ListAccessor(out)
	if fromErr != nil || toErr != nil || meta.SetList(out, items) != nil {
		return k.NewList() // cannot happen with our lists; an empty list is the safe result
	}
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetContinue(from.GetContinue())
	to.SetRemainingItemCount(from.GetRemainingItemCount())
	return out
}

// Get reads one object.
func (r *REST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := r.Store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return r.kind.redact(ctx, out), nil
}

// List reads many objects.
func (r *REST[T]) List(ctx context.Context, options *metav1internal.ListOptions) (runtime.Object, error) {
	out, err := r.Store.List(ctx, options)
	if err != nil {
		return nil, err
	}
	return r.kind.withTypeMeta(r.kind.redactList(ctx, out)), nil
}

// withTypeMeta sets the kind and apiVersion of every item, as every object has them
// (docs/spec/resources.md#r16). The items belong to the list, although the objects that they point
// to may be shared.
func (k *kind[T]) withTypeMeta(list runtime.Object) runtime.Object {
	gvk := v1alpha1.SchemeGroupVersion.WithKind(k.info.Kind)
	_ = meta.EachListItem(list, func(obj runtime.Object) error { // the callback never fails
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		return nil
	})
	return list
}

// Watch streams changes.
func (r *REST[T]) Watch(ctx context.Context, options *metav1internal.ListOptions) (watch.Interface, error) {
	watcher, err := r.Store.Watch(ctx, options)
	if err != nil || r.kind.Redacter == nil {
		return watcher, err
	}
	return watch.Filter(watcher, func(event watch.Event) (watch.Event, bool) {
		if event.Type != watch.Bookmark && event.Type != watch.Error {
			event.Object = r.kind.redact(ctx, unwrap(event.Object))
		}
		return event, true
	}), nil
}

// unwrap removes the watch cache's serialization wrapper, because a redacted object must not be sent
// from the encoded bytes that other watchers share.
func unwrap(obj runtime.Object) runtime.Object {
	if wrapper, ok := obj.(interface{ GetObject() runtime.Object }); ok {
		return wrapper.GetObject()
	}
	return obj
}
