package reconcile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Lookup returns the objects of a namespace with a value, without a scan of all objects. The
// objects belong to the cache: do not change them.
type Lookup[T metav1.Object] func(namespace, value string) []T

// Index indexes an informer's objects by a value; objects with an empty value are left out. The
// name must be unique for the informer. Call it before the informer starts.
func Index[T metav1.Object](informer cache.SharedIndexInformer, name string, value func(T) string) (Lookup[T], error) {
	err := informer.AddIndexers(cache.Indexers{name: func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok || value(object) == "" {
			return nil, nil
		}
		return []string{object.GetNamespace() + "/" + value(object)}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("adding index %s: %w", name, err)
	}
	return func(namespace, value string) []T {
		found, err := informer.GetIndexer().ByIndex(name, namespace+"/"+value)
		if err != nil {
			return nil // cannot happen: the index was added above
		}
		out := make([]T, 0, len(found))
		for _, obj := range found {
			if object, ok := obj.(T); ok {
				out = append(out, object)
			}
		}
		return out
	}, nil
}
