package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"freshet/api/v1alpha1"
	"freshet/internal/resources/printers"
)

// Storage is what a kind puts behind its paths.
type Storage struct {
	Plural string
	Main   rest.Storage
	Status rest.Storage
}

// Definition is a Kind of any type, ready to be put into a server.
type Definition interface {
	// AddToScheme registers the kind's defaults and field selectors.
	AddToScheme(scheme *runtime.Scheme) error
	// Open makes the kind's storage.
	Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (Storage, error)
	// Resource is the kind's plural name; Namespaced its scope.
	Resource() (plural string, namespaced bool)
	// IsReadOnly says that only the service writes the kind.
	IsReadOnly() bool

	// opened is the store behind the definition; nil before Open.
	opened() *genericregistry.Store
}

// Define makes a Kind of a concrete type a Definition.
func Define[T Object](kind Kind[T]) Definition { return &definition[T]{kind: &kind} }

type definition[T Object] struct {
	kind  *Kind[T]
	store *genericregistry.Store
}

func (d *definition[T]) opened() *genericregistry.Store { return d.store }

func (d *definition[T]) Resource() (string, bool) { return d.kind.Plural, !d.kind.Cluster }
func (d *definition[T]) IsReadOnly() bool         { return d.kind.Access == ReadOnly }

func (d *definition[T]) AddToScheme(scheme *runtime.Scheme) error {
	if d.kind.Default != nil {
		scheme.AddTypeDefaultingFunc(d.kind.New(), func(obj any) { d.kind.Default(obj.(T)) })
		scheme.AddTypeDefaultingFunc(d.kind.NewList(), d.defaultList)
	}
	gvk := v1alpha1.SchemeGroupVersion.WithKind(d.kind.Kind)
	return scheme.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) {
		if _, ok := d.kind.selectable(d.kind.New())[label]; ok {
			return label, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector: only %q", label, d.kind.selectableNames())
	})
}

func (d *definition[T]) defaultList(list any) {
	_ = meta.EachListItem(list.(runtime.Object), func(obj runtime.Object) error { //nolint:errcheck // the callback never fails
		d.kind.Default(obj.(T))
		return nil
	})
}

// Open builds the store twice: the main resource, and a shallow copy whose
// update touches status only.
func (d *definition[T]) Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (Storage, error) {
	kind := d.kind
	main := newStrategy(kind, scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return kind.New() },
		NewListFunc:               kind.NewList,
		PredicateFunc:             kind.match,
		DefaultQualifiedResource:  v1alpha1.Resource(kind.Plural),
		SingularQualifiedResource: v1alpha1.Resource(kind.Singular),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            printers.Table{Columns: kind.Columns},
		DeleteCollectionWorkers:   8,
	}
	kind.hook(store)
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: kind.attributes})
	if err != nil {
		return Storage{}, fmt.Errorf("opening the store of %s: %w", kind.Plural, err)
	}
	d.store = store
	status := *store
	status.UpdateStrategy = statusStrategy[T]{main}
	status.ResetFieldsStrategy = statusStrategy[T]{main}
	return Storage{
		Plural: kind.Plural,
		Main:   &REST[T]{Store: store, kind: kind},
		Status: &StatusREST[T]{store: &status, kind: kind},
	}, nil
}

// hook connects the kind's observers to the store, behind the durable write.
func (k *Kind[T]) hook(store *genericregistry.Store) {
	if k.Created != nil {
		store.AfterCreate = func(obj runtime.Object, options *metav1.CreateOptions) {
			if len(options.DryRun) == 0 {
				k.Created(obj.(T))
			}
		}
	}
	if k.Updated != nil {
		store.BeginUpdate = func(_ context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
			dryRun := len(options.DryRun) > 0
			return func(_ context.Context, success bool) {
				if success && !dryRun {
					k.Updated(obj.(T), old.(T))
				}
			}, nil
		}
	}
	if k.Deleted != nil {
		store.AfterDelete = func(obj runtime.Object, options *metav1.DeleteOptions) {
			if len(options.DryRun) == 0 {
				k.Deleted(obj.(T))
			}
		}
	}
}

func (k *Kind[T]) match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
}

func (k *Kind[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("not a %s: %T", k.Kind, obj)
	}
	return object.GetLabels(), k.selectable(object), nil
}

func (k *Kind[T]) selectable(object T) fields.Set {
	set := fields.Set{"metadata.name": object.GetName()}
	if !k.Cluster {
		set["metadata.namespace"] = object.GetNamespace()
	}
	if k.Fields != nil {
		for name, value := range k.Fields(object) {
			set[name] = value
		}
	}
	return set
}

func (k *Kind[T]) selectableNames() []string {
	set := k.selectable(k.New())
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	return names
}

// REST is a kind's main resource: the generic store, with the corners of the
// machinery that answer 500 to odd input rounded off (R11).
type REST[T Object] struct {
	*genericregistry.Store
	kind *Kind[T]
}

// ShortNames implements rest.ShortNamesProvider.
func (r *REST[T]) ShortNames() []string { return r.kind.ShortNames }

// Categories puts every kind a user owns into kubectl get all.
func (r *REST[T]) Categories() []string {
	if r.kind.Access == ReadOnly {
		return nil
	}
	return []string{"all"}
}

// Create adds to the answer what is shown once and never stored.
func (r *REST[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if object, ok := obj.(T); ok && r.kind.NamePrefix != "" && object.GetName() == "" && object.GetGenerateName() == "" {
		object.SetName(r.kind.NamePrefix + rand.String(8))
	}
	out, err := r.Store.Create(ctx, obj, validate, options)
	if err == nil && r.kind.Reveal != nil {
		if object, ok := out.(T); ok {
			r.kind.Reveal(ctx, object)
		}
	}
	return out, err
}

// Update replaces, patches and applies.
func (r *REST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, checkedInfo{info}, createValidation, updateValidation, forceAllowCreate, options)
}

// Delete refuses what the kind protects, then deletes.
func (r *REST[T]) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if err := checkDeleteOptions(options); err != nil {
		return nil, false, err
	}
	if r.kind.ValidateDelete != nil {
		next := validate
		validate = func(ctx context.Context, obj runtime.Object) error {
			if object, ok := obj.(T); ok && object.GetDeletionTimestamp() == nil {
				if err := r.kind.ValidateDelete(ctx, object, options); err != nil {
					return err
				}
			}
			if next == nil {
				return nil
			}
			return next(ctx, obj)
		}
	}
	return r.Store.Delete(ctx, name, validate, options)
}

// DeleteCollection deletes what the selectors match.
func (r *REST[T]) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *metav1internal.ListOptions) (runtime.Object, error) {
	if err := checkDeleteOptions(options); err != nil {
		return nil, err
	}
	if r.kind.ValidateDelete == nil {
		return r.Store.DeleteCollection(ctx, validate, options, list)
	}
	next := validate
	return r.Store.DeleteCollection(ctx, func(ctx context.Context, obj runtime.Object) error {
		if object, ok := obj.(T); ok && object.GetDeletionTimestamp() == nil {
			if err := r.kind.ValidateDelete(ctx, object, options); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj)
	}, options, list)
}

func checkDeleteOptions(options *metav1.DeleteOptions) error {
	if options == nil || options.GracePeriodSeconds == nil || *options.GracePeriodSeconds >= 0 {
		return nil
	}
	kind := schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}
	return apierrors.NewInvalid(kind, "", field.ErrorList{
		field.Invalid(field.NewPath("gracePeriodSeconds"), *options.GracePeriodSeconds, "must be greater than or equal to 0"),
	})
}

// StatusREST is a kind's status subresource.
type StatusREST[T Object] struct {
	store *genericregistry.Store
	kind  *Kind[T]
}

// New implements rest.Storage.
func (r *StatusREST[T]) New() runtime.Object { return r.kind.New() }

// Destroy does nothing: the main resource owns the store.
func (r *StatusREST[T]) Destroy() {}

// Get reads the object.
func (r *StatusREST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the object's status and nothing else.
func (r *StatusREST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, checkedInfo{info}, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *StatusREST[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *StatusREST[T]) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}

// checkedInfo turns what the machinery would report as a fault of ours (a patch
// that does not fit the type, a resourceVersion that is no number) into an
// answer the caller can act on.
type checkedInfo struct{ rest.UpdatedObjectInfo }

func (i checkedInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := i.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) || ctx.Err() != nil {
			return nil, err
		}
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if _, err := (storage.APIObjectVersioner{}).ParseResourceVersion(object.GetResourceVersion()); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.resourceVersion %q is not a version that this server gave out", object.GetResourceVersion()))
	}
	return obj, nil
}
