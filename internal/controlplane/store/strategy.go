package store

import (
	"context"
	"reflect"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/controlplane/validation"
)

// strategy is the create, update and delete behaviour of a kind's main resource.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind *kind[T]
}

func newStrategy[T Object](kind *kind[T], typer runtime.ObjectTyper) strategy[T] {
	return strategy[T]{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: kind}
}

func (s strategy[T]) NamespaceScoped() bool { return !s.kind.info.ClusterScoped }

// PrepareForCreate initializes an object: generation 1, no status, the kind's finalizer.
func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	object := obj.(T)
	object.SetGeneration(1)
	reset(s.kind.Status, object)
	if f := s.kind.info.Finalizer; f != "" && !slices.Contains(object.GetFinalizers(), f) {
		object.SetFinalizers(append(object.GetFinalizers(), f))
	}
	s.preserveServiceOwner(ctx, object, nil)
	if s.kind.Preparer != nil {
		s.kind.Preparer.PrepareCreate(ctx, object)
	}
	s.describe(object)
}

// describe lets the kind derive the status.
func (s strategy[T]) describe(object T) {
	if s.kind.Describer != nil && object.GetDeletionTimestamp() == nil {
		s.kind.Describer.Describe(object)
	}
}

// PrepareForUpdate restores the status, which the main resource cannot change, and increments the
// generation when the spec changes.
func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	carry(s.kind.Status, object, before)
	s.preserveFinalizer(object, before)
	s.preserveServiceOwner(ctx, object, before.GetOwnerReferences())
	s.setGeneration(object, before)
	if s.kind.Preparer != nil {
		s.kind.Preparer.PrepareUpdate(ctx, object, before)
		s.setGeneration(object, before) // the preparer may have restored omitted fields
	}
	if object.GetGeneration() != before.GetGeneration() {
		s.describe(object)
	}
}

// setGeneration increments the generation if the spec has changed.
func (s strategy[T]) setGeneration(object, before T) {
	object.SetGeneration(before.GetGeneration())
	if changed(s.kind.Spec, object, before) {
		object.SetGeneration(before.GetGeneration() + 1)
	}
}

// preserveFinalizer restores the kind's finalizer if a replace omitted it: without it a later deletion
// would not tear down what the controller created. The finalizer can be removed from an object that
// is being deleted.
func (s strategy[T]) preserveFinalizer(object, before T) {
	f := s.kind.info.Finalizer
	if f == "" || before.GetDeletionTimestamp() != nil || slices.Contains(object.GetFinalizers(), f) {
		return
	}
	if slices.Contains(before.GetFinalizers(), f) {
		object.SetFinalizers(append(object.GetFinalizers(), f))
	}
}

func (s strategy[T]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	object := obj.(T)
	errs := s.validateMeta(object)
	if rv := object.GetResourceVersion(); rv != "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "resourceVersion"), rv,
			"must not be set on create"))
	}
	if s.kind.Validator != nil {
		errs = append(errs, s.kind.Validator.Validate(ctx, object)...)
	}
	if s.kind.CreateValidator != nil {
		errs = append(errs, s.kind.CreateValidator.ValidateCreate(ctx, object)...)
	}
	return errs
}

func (s strategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	object, before := obj.(T), old.(T)
	errs := s.kind.unknownFields(object) // the API machinery validates the metadata of updates
	errs = append(errs, checkMetaLimits(object, before)...)
	if s.kind.Validator != nil {
		errs = append(errs, s.kind.Validator.Validate(ctx, object)...)
	}
	if s.kind.UpdateValidator != nil {
		errs = append(errs, s.kind.UpdateValidator.ValidateUpdate(ctx, object, before)...)
	}
	return errs
}

// validateMeta validates the metadata of new objects, because the API machinery does not validate
// their names.
func (s strategy[T]) validateMeta(object T) field.ErrorList {
	validateName := apivalidation.NameIsDNSSubdomain
	if s.kind.NameValidator != nil {
		validateName = s.kind.NameValidator.ValidateName
	}
	errs := apivalidation.ValidateObjectMetaAccessor(object, !s.kind.info.ClusterScoped, validateName,
		field.NewPath("metadata"))
	var none T
	errs = append(errs, checkMetaLimits(object, none)...)
	return append(errs, s.kind.unknownFields(object)...)
}

// WarningsOnCreate returns the kind's warnings.
func (s strategy[T]) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.kind.Warner == nil {
		return nil
	}
	var none T
	return s.kind.Warner.Warnings(ctx, obj.(T), none)
}

// WarningsOnUpdate returns the kind's warnings.
func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if s.kind.Warner == nil {
		return nil
	}
	return s.kind.Warner.Warnings(ctx, obj.(T), old.(T))
}

// Canonicalize implements rest.RESTCreateStrategy and does nothing. It runs before authorization and
// admission; beforeWrite completes the object after them.
func (strategy[T]) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate returns false: a PUT on a missing name returns 404. Only apply creates
// objects.
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate returns true: a replace without resourceVersion overwrites
// (docs/spec/resources.md#r11).
func (strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return true }

// CheckGracefulDelete honours gracePeriodSeconds; the default is 0 for every kind. The garbage
// controller deletes the object when its grace period ends. The API machinery calls it in the write
// that sets the deletion timestamp, so that the status can show the deletion immediately.
func (s strategy[T]) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options.GracePeriodSeconds == nil {
		options.GracePeriodSeconds = new(int64(0))
	}
	if *options.GracePeriodSeconds > 0 {
		return true // the object stays active until then
	}
	if s.release(obj.(T), options) {
		return false
	}
	object := obj.(T)
	if s.kind.DeletionMarker != nil {
		s.kind.DeletionMarker.MarkDeleting(object)
	} else if message := s.kind.info.DeletingMessage; message != "" {
		status := s.kind.Status(object)
		list, _ := conditions.Deleting(conditionsOf(status), message, object.GetGeneration()+1)
		reflect.ValueOf(status).Elem().FieldByName("Conditions").Set(reflect.ValueOf(list))
	}
	return false
}

// release removes the kind's finalizer from an object that has no other finalizers, if the kind's
// reconciler would do nothing more. An object that waits for its dependents or orphans them gets
// further finalizers and is not released here.
func (s strategy[T]) release(object T, options *metav1.DeleteOptions) bool {
	policy := options.PropagationPolicy
	//nolint:staticcheck // deprecated, and specified (docs/spec/resources.md#delete-parameters)
	orphan := options.OrphanDependents
	if !s.kind.info.DeletesImmediately || (policy != nil && *policy != metav1.DeletePropagationBackground) ||
		(orphan != nil && *orphan) ||
		!slices.Equal(object.GetFinalizers(), []string{s.kind.info.Finalizer}) {
		return false
	}
	object.SetFinalizers(nil)
	return true
}

// DefaultGarbageCollectionPolicy deletes dependents in the background.
func (strategy[T]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// GetResetFields excludes the status from apply on the main resource.
func (strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("status"))
}

// statusStrategy is the update behavior of a kind's status subresource: only the status changes.
type statusStrategy[T Object] struct {
	strategy[T]
}

func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	carry(s.kind.Spec, object, before)
	// Only the conditions and counts in status may change here. All metadata that users write stays
	// as it is, except for the managed fields that apply records.
	object.SetLabels(before.GetLabels())
	object.SetAnnotations(before.GetAnnotations())
	object.SetFinalizers(before.GetFinalizers())
	object.SetOwnerReferences(before.GetOwnerReferences())
	object.SetGeneration(before.GetGeneration())
}

// ValidateUpdate validates the conditions; the API machinery validates the metadata. The kind
// restores the fields that the caller may not write only afterwards, so that validation sees the
// caller's input.
func (s statusStrategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := validation.Conditions(field.NewPath("status", "conditions"), conditionsOf(s.kind.Status(obj.(T))))
	if len(errs) == 0 && s.kind.StatusPreparer != nil {
		s.kind.StatusPreparer.PrepareStatus(ctx, obj.(T), old.(T))
	}
	return errs
}

// WarningsOnUpdate returns none, because the kind's warnings are about the spec.
func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields excludes everything except the status from apply on this subresource.
func (statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "labels"),
		fieldpath.MakePathOrDie("metadata", "annotations"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	)
}

// conditionsOf returns the conditions that every kind's status has. Those of an API key have the
// type of the API machinery.
func conditionsOf(status any) []v1alpha1.Condition {
	switch list := reflect.ValueOf(status).Elem().FieldByName("Conditions").Interface().(type) {
	case []v1alpha1.Condition:
		return list
	case []metav1.Condition:
		converted := make([]v1alpha1.Condition, len(list))
		for i, c := range list {
			converted[i] = v1alpha1.Condition{
				Type: c.Type, Status: v1alpha1.ConditionStatus(c.Status),
				ObservedGeneration: c.ObservedGeneration, Reason: c.Reason, Message: c.Message,
			}
		}
		return converted
	}
	return nil
}

func resetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(paths...),
	}
}

// fieldPointer returns a pointer into an object: its spec or its status.
type fieldPointer[T any] func(T) any

func reset[T any](get fieldPointer[T], obj T) {
	reflect.ValueOf(get(obj)).Elem().SetZero()
}

func carry[T any](get fieldPointer[T], obj, old T) {
	reflect.ValueOf(get(obj)).Elem().Set(reflect.ValueOf(get(old)).Elem())
}

func changed[T any](get fieldPointer[T], obj, old T) bool {
	return !apiequality.Semantic.DeepEqual(get(obj), get(old))
}
