package store

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"freshet/internal/controlplane/budget"
)

// REST is a kind's main resource: the generic store, which returns client errors instead of 500 for
// invalid input (docs/spec/resources.md#r11) and omits the fields that the caller may not see
// (redact.go).
type REST[T Object] struct {
	*genericregistry.Store
	dryRun *genericregistry.Store // for the writes of a dry run
	kind   *kind[T]
	locks  *objectLocks
}

// ShortNames implements rest.ShortNamesProvider.
func (r *REST[T]) ShortNames() []string { return r.kind.info.ShortNames }

// Categories adds every kind that users own to kubectl get all.
func (r *REST[T]) Categories() []string {
	if r.kind.info.ReadOnly {
		return nil
	}
	return []string{"all"}
}

// Create generates names for objects without one, and adds the values to the response that are
// shown once and never stored.
func (r *REST[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions,
) (runtime.Object, error) {
	if object, ok := obj.(T); ok && r.kind.info.NamePrefix != "" && object.GetName() == "" &&
		object.GetGenerateName() == "" {
		object.SetName(r.kind.info.NamePrefix + rand.String(8))
	}
	out, err := writer(r.Store, r.dryRun, options.DryRun).Create(budget.Begin(ctx, false), obj, validate, options)
	if err != nil {
		return nil, err
	}
	if object, ok := out.(T); ok && r.kind.Revealer != nil && len(options.DryRun) == 0 {
		r.kind.Revealer.Reveal(object)
	}
	return r.kind.redact(ctx, out), nil
}

// Update replaces, patches or applies an object.
func (r *REST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	unlock, err := r.locks.lock(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	out, created, err := writer(r.Store, r.dryRun, options.DryRun).Update(budget.Begin(ctx, false), name,
		r.kind.patched(name, info), createValidation, updateValidation, forceAllowCreate, options)
	if err != nil {
		return nil, false, err
	}
	if object, ok := out.(T); ok && created && r.kind.Revealer != nil && len(options.DryRun) == 0 {
		r.kind.Revealer.Reveal(object)
	}
	return r.kind.redact(ctx, out), created, nil
}

// Delete deletes an object unless the kind rejects it.
func (r *REST[T]) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	if err := completeDeleteOptions(ctx, options); err != nil {
		return nil, false, err
	}
	unlock, err := r.locks.lock(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	out, deleted, err := r.Store.Delete(budget.Begin(ctx, true), name,
		r.withDeleteValidation(validate, options), options)
	if err != nil {
		return nil, false, err
	}
	if !deleted {
		r.notifyDeleting(out, options)
	}
	return r.kind.redact(ctx, out), deleted, nil
}

// withDeleteValidation calls the kind's DeleteValidator before next, the API machinery's validation.
func (r *REST[T]) withDeleteValidation(next rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) rest.ValidateObjectFunc {
	if r.kind.DeleteValidator == nil {
		return next
	}
	return func(ctx context.Context, obj runtime.Object) error {
		if object, ok := obj.(T); ok && object.GetDeletionTimestamp() == nil {
			if err := r.kind.DeleteValidator.ValidateDelete(ctx, object, options); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj)
	}
}

// notifyDeleting notifies the observer of an object that finalizers hold. An object in its grace period
// stays active until another delete call ends that period.
func (r *REST[T]) notifyDeleting(out runtime.Object, options *metav1.DeleteOptions) {
	object, ok := out.(T)
	if !ok || r.kind.Observer == nil || len(options.DryRun) > 0 {
		return
	}
	if options.GracePeriodSeconds == nil || *options.GracePeriodSeconds == 0 {
		r.kind.notify(object, true)
	}
}

// StatusREST is a kind's status subresource.
type StatusREST[T Object] struct {
	store  *genericregistry.Store
	dryRun *genericregistry.Store // for the writes of a dry run
	kind   *kind[T]
	locks  *objectLocks
}

// New implements rest.Storage.
func (r *StatusREST[T]) New() runtime.Object { return r.kind.New() }

// Destroy does nothing: the main resource owns the store.
func (r *StatusREST[T]) Destroy() {}

// Get reads the object.
func (r *StatusREST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return r.kind.redact(ctx, out), nil
}

// Update changes the object's status and nothing else.
func (r *StatusREST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	unlock, err := r.locks.lock(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	out, created, err := writer(r.store, r.dryRun, options.DryRun).Update(ctx, name, r.kind.patched(name, info),
		createValidation, updateValidation, false, options)
	if err != nil {
		return nil, false, err
	}
	return r.kind.redact(ctx, out), created, nil
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *StatusREST[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *StatusREST[T]) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
