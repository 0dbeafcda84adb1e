package reconcile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Lookup finds the objects of a namespace that have a value, without looking at
// those that do not. The objects are the cache's: read them.
type Lookup[T metav1.Object] func(namespace, value string) []T

// Index keeps an informer's objects in order by a value of theirs; objects
// whose value is empty are left out. The name is for this informer alone. Call
// it before the informer starts.
func Index[T metav1.Object](informer cache.SharedIndexInformer, name string, value func(T) string) (Lookup[T], error) {
	err := informer.AddIndexers(cache.Indexers{name: func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok || value(object) == "" {
			return nil, nil
		}
		return []string{object.GetNamespace() + "/" + value(object)}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("keeping an index %s: %w", name, err)
	}
	return func(namespace, value string) []T {
		found, err := informer.GetIndexer().ByIndex(name, namespace+"/"+value)
		if err != nil {
			return nil // there is no such index: it was added above
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
