package reconcile

import "k8s.io/client-go/tools/cache"

// Follow calls put with every object that is added or changed and remove with every deleted object,
// in the order of the changes.
func Follow[T any](informer cache.SharedIndexInformer, put, remove func(T)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { each(obj, put) },
		UpdateFunc: func(_, obj any) { each(obj, put) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			each(obj, remove)
		},
	})
	return err
}

func each[T any](obj any, call func(T)) {
	if object, ok := obj.(T); ok {
		call(object)
	}
}
