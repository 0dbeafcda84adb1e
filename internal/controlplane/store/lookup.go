package store

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Lookup reads an object for other kinds while they process a write. It returns false if the object
// does not exist or cannot be read.
func (r *Resource[T]) Lookup(ctx context.Context, namespace, name string) (T, bool) {
	var none T
	if r.store == nil || namespace == "" || name == "" {
		return none, false
	}
	obj, err := r.store.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
	if err != nil {
		return none, false
	}
	object, ok := obj.(T)
	return object, ok
}

// NamesWhere returns the names of the objects in a namespace whose field has a value, and the names
// of those that are protected from deletion.
func (r *Resource[T]) NamesWhere(ctx context.Context, namespace, fieldName,
	value string,
) (names, protected []string, err error) {
	if r.store == nil {
		return nil, nil, nil
	}
	list, err := r.store.List(request.WithNamespace(ctx, namespace), &metav1internal.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(fieldName, value),
	})
	if err != nil {
		return nil, nil, err
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		object, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		names = append(names, object.GetName())
		if Protected(object) {
			protected = append(protected, object.GetName())
		}
		return nil
	})
	return names, protected, err
}
