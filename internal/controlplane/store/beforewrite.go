package store

import (
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
)

// beforeWrite completes an object with the kind's Finisher and notifies the kind's Expecter of it.
// It is a TTLFunc of the generic store, because that is the only function that the generic store
// calls with the object itself after validation, authorization and admission: those get a copy, and
// a strategy's Canonicalize runs before them. The lifetime stays as it is.
func (k *kind[T]) beforeWrite(dryRun bool) func(obj runtime.Object, lifetime uint64, update bool) (uint64, error) {
	return func(obj runtime.Object, lifetime uint64, _ bool) (uint64, error) {
		object, ok := obj.(T)
		if !ok {
			return lifetime, nil
		}
		switch {
		case dryRun && k.DryRunFinisher != nil:
			k.DryRunFinisher.FinishDryRun(object)
		case k.Finisher != nil:
			k.Finisher.Finish(object)
		}
		if k.Expecter != nil && !dryRun {
			k.Expecter.Expect(object)
		}
		return lifetime, nil
	}
}

// forDryRun returns a shallow copy of a store whose writes no Expecter is notified of.
func (k *kind[T]) forDryRun(store *genericregistry.Store) *genericregistry.Store {
	dry := *store
	dry.TTLFunc = k.beforeWrite(true)
	return &dry
}

// writer returns the store that executes a write with this value of dryRun.
func writer(store, dryRun *genericregistry.Store, options []string) *genericregistry.Store {
	if len(options) > 0 {
		return dryRun
	}
	return store
}
