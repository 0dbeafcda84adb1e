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

// PrepareForCreate starts an object's life: generation 1, no status, the
// kind's finalizer.
func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	object := obj.(T)
	object.SetGeneration(1)
	reset(s.kind.Status, object)
	if f := s.kind.info.Finalizer; f != "" && !slices.Contains(object.GetFinalizers(), f) {
		object.SetFinalizers(append(object.GetFinalizers(), f))
	}
	s.keepServiceOwner(ctx, object, nil)
	if s.kind.preparer != nil {
		s.kind.preparer.PrepareCreate(ctx, object)
	}
	s.describe(object)
}

// describe has the kind say what the object is now.
func (s strategy[T]) describe(object T) {
	if s.kind.describer != nil && object.GetDeletionTimestamp() == nil {
		s.kind.describer.Describe(object)
	}
}

// PrepareForUpdate keeps the status out of the main resource's reach and
// counts changes of the spec.
func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	carry(s.kind.Status, object, before)
	s.keepFinalizer(object, before)
	s.keepServiceOwner(ctx, object, before.GetOwnerReferences())
	s.count(object, before)
	if s.kind.preparer != nil {
		s.kind.preparer.PrepareUpdate(ctx, object, before)
		s.count(object, before) // it may have put back what the user left out
	}
	if object.GetGeneration() != before.GetGeneration() {
		s.describe(object)
	}
}

// count gives a changed spec the next generation.
func (s strategy[T]) count(object, before T) {
	object.SetGeneration(before.GetGeneration())
	if changed(s.kind.Spec, object, before) {
		object.SetGeneration(before.GetGeneration() + 1)
	}
}

// keepFinalizer puts the kind's finalizer back that a replace left out: without
// it a later deletion would leave behind what the controller made. It can be
// taken off an object that is being deleted.
func (s strategy[T]) keepFinalizer(object, before T) {
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
	if s.kind.validator != nil {
		errs = append(errs, s.kind.validator.Validate(ctx, object)...)
	}
	if s.kind.createValidator != nil {
		errs = append(errs, s.kind.createValidator.ValidateCreate(ctx, object)...)
	}
	return errs
}

func (s strategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	object, before := obj.(T), old.(T)
	errs := s.kind.unknownFields(object) // the machinery looks at the metadata of updates
	errs = append(errs, crowded(object, before)...)
	if s.kind.validator != nil {
		errs = append(errs, s.kind.validator.Validate(ctx, object)...)
	}
	if s.kind.updateValidator != nil {
		errs = append(errs, s.kind.updateValidator.ValidateUpdate(ctx, object, before)...)
	}
	return errs
}

// validateMeta is called because the machinery does not look at the names of
// new objects.
func (s strategy[T]) validateMeta(object T) field.ErrorList {
	validateName := apivalidation.NameIsDNSSubdomain
	if s.kind.nameValidator != nil {
		validateName = s.kind.nameValidator.ValidateName
	}
	errs := apivalidation.ValidateObjectMetaAccessor(object, !s.kind.info.ClusterScoped, validateName,
		field.NewPath("metadata"))
	var none T
	errs = append(errs, crowded(object, none)...)
	return append(errs, s.kind.unknownFields(object)...)
}

// WarningsOnCreate passes the kind's warnings on.
func (s strategy[T]) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.kind.warner == nil {
		return nil
	}
	var none T
	return s.kind.warner.Warnings(ctx, obj.(T), none)
}

// WarningsOnUpdate passes the kind's warnings on.
func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if s.kind.warner == nil {
		return nil
	}
	return s.kind.warner.Warnings(ctx, obj.(T), old.(T))
}

// Canonicalize runs behind validation and before storage.
func (s strategy[T]) Canonicalize(obj runtime.Object) {
	if s.kind.finisher != nil {
		s.kind.finisher.Finish(obj.(T))
	}
}

// AllowCreateOnUpdate: a PUT on an absent name is 404, except that apply creates.
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate: a replace without resourceVersion wins
// (docs/spec/resources.md#r11).
func (strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return true }

// CheckGracefulDelete honours gracePeriodSeconds; the default is 0 for every
// kind. The garbage controller takes the object away when its time has come. The
// machinery calls it in the write that marks the object as being deleted, so that
// its status can say so at once.
func (s strategy[T]) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options.GracePeriodSeconds == nil {
		zero := int64(0)
		options.GracePeriodSeconds = &zero
	}
	if *options.GracePeriodSeconds > 0 {
		return true // it lives on until then
	}
	if s.release(obj.(T), options) {
		return false
	}
	if s.kind.deletionMarker != nil {
		s.kind.deletionMarker.MarkDeleting(obj.(T))
	}
	return false
}

// release takes the kind's finalizer off an object that nothing else holds, when
// the kind's reconciler would do no more than that. What is asked to wait for its
// dependents, or to leave them behind, is held by that.
func (s strategy[T]) release(object T, options *metav1.DeleteOptions) bool {
	policy, orphan := options.PropagationPolicy, options.OrphanDependents //nolint:staticcheck // deprecated, and specified (docs/spec/resources.md#delete-parameters)
	if !s.kind.info.GoesAtOnce || (policy != nil && *policy != metav1.DeletePropagationBackground) ||
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

// GetResetFields tells apply that status is not for users of the main resource.
func (strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("status"))
}

// statusStrategy is the update behaviour of a kind's status subresource: only
// status changes.
type statusStrategy[T Object] struct {
	strategy[T]
}

func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	object, before := obj.(T), old.(T)
	carry(s.kind.Spec, object, before)
	// Only the conditions and counts in status may change here; all of the
	// metadata that a user writes stays as it is, but for what apply records.
	object.SetLabels(before.GetLabels())
	object.SetAnnotations(before.GetAnnotations())
	object.SetFinalizers(before.GetFinalizers())
	object.SetOwnerReferences(before.GetOwnerReferences())
	object.SetGeneration(before.GetGeneration())
}

// ValidateUpdate looks at the conditions; the machinery looks at the metadata.
// The kind puts back what is not for the caller to write only after that: what is
// looked at is what the caller wrote.
func (s statusStrategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := validation.Conditions(field.NewPath("status", "conditions"), conditionsOf(s.kind.Status(obj.(T))))
	if len(errs) == 0 && s.kind.statusPreparer != nil {
		s.kind.statusPreparer.PrepareStatus(ctx, obj.(T), old.(T))
	}
	return errs
}

// WarningsOnUpdate: the kind's warnings are about the spec.
func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields tells apply that everything but status is out of reach here.
func (statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "labels"),
		fieldpath.MakePathOrDie("metadata", "annotations"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	)
}

// conditionsOf finds the conditions that every kind's status has. Those of an API
// key are of the machinery's own type.
func conditionsOf(status any) []v1alpha1.Condition {
	switch list := reflect.ValueOf(status).Elem().FieldByName("Conditions").Interface().(type) {
	case []v1alpha1.Condition:
		return list
	case []metav1.Condition:
		conditions := make([]v1alpha1.Condition, len(list))
		for i, c := range list {
			conditions[i] = v1alpha1.Condition{
				Type: c.Type, Status: v1alpha1.ConditionStatus(c.Status),
				ObservedGeneration: c.ObservedGeneration,
			}
		}
		return conditions
	}
	return nil
}

func resetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(paths...),
	}
}

// part is a pointer into an object: its spec or its status.
type part[T any] func(T) any

func reset[T any](get part[T], obj T) {
	reflect.ValueOf(get(obj)).Elem().SetZero()
}

func carry[T any](get part[T], obj, old T) {
	reflect.ValueOf(get(obj)).Elem().Set(reflect.ValueOf(get(old)).Elem())
}

func changed[T any](get part[T], obj, old T) bool {
	return !apiequality.Semantic.DeepEqual(get(obj), get(old))
}
