package store

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Storage contains the REST storages of a kind.
type Storage struct {
	Main         rest.Storage
	Status       rest.Storage
	Subresources map[string]rest.Storage // by name, without the status
}

// Definition is a Resource of any type, ready to be installed in a server.
type Definition interface {
	Info() Info
	// AddToScheme registers the kind's defaults and field selectors, and the bodies of its
	// subresources.
	AddToScheme(scheme *runtime.Scheme) error
	// Open creates the kind's storage.
	Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter, authorizer Authorizer) (Storage, error)
	// Scope returns the scope of an object for permissions. ScopeOfName returns as much of it as
	// the name determines.
	Scope(ctx context.Context, namespace, name string) access.Scope
	ScopeOfName(namespace, name string) access.Scope
	// Count returns the number of objects of the kind in an organization.
	Count(ctx context.Context, namespace string) (int64, error)
	// Object is Lookup for callers that do not have the kind's type.
	Object(ctx context.Context, namespace, name string) (runtime.Object, bool)
	// Conditions returns the conditions in the status of an object of the kind.
	Conditions(obj any) []v1alpha1.Condition
	// Quota returns the quota that limits the number of objects; false if there is none.
	Quota() (quota.Resource, bool)
	// RewriteApply changes the decoded body of an apply, and reports whether it has; stored returns the
	// stored object, or nil.
	RewriteApply(body map[string]any, stored func() runtime.Object) bool
	// Subresources returns the subresources other than the status.
	Subresources() []Subresource
}

// Resource is a kind that is installed in a server.
type Resource[T Object] struct {
	kind  *kind[T]
	store *genericregistry.Store // nil before Open
}

// Define creates the Resource of a kind.
func Define[T Object](of Kind[T]) *Resource[T] { return &Resource[T]{kind: newKind(of)} }

// OnStored sets a function that is called after the kind's observer; calls return after f has
// returned. It must be called before Open.
func (r *Resource[T]) OnStored(f func(obj T, gone bool)) { r.kind.onStored = f }

// Info implements Definition.
func (r *Resource[T]) Info() Info { return r.kind.info }

// Scope implements Definition.
func (r *Resource[T]) Scope(ctx context.Context, namespace, name string) access.Scope {
	if object, ok := r.Lookup(ctx, namespace, name); ok {
		return r.kind.scope(object)
	}
	return r.ScopeOfName(namespace, name)
}

// ScopeOfName implements Definition.
func (r *Resource[T]) ScopeOfName(namespace, name string) access.Scope {
	return r.kind.scopeOfName(namespace, name)
}

// Object implements Definition.
func (r *Resource[T]) Object(ctx context.Context, namespace, name string) (runtime.Object, bool) {
	return r.Lookup(ctx, namespace, name)
}

// Conditions implements Definition.
func (r *Resource[T]) Conditions(obj any) []v1alpha1.Condition {
	object, ok := obj.(T)
	if !ok {
		return nil
	}
	return conditionsOf(r.kind.Status(object))
}

// Quota implements Definition.
func (r *Resource[T]) Quota() (quota.Resource, bool) {
	if r.kind.Limiter == nil {
		return 0, false
	}
	return r.kind.Limiter.Quota(), true
}

// RewriteApply implements Definition.
func (r *Resource[T]) RewriteApply(body map[string]any, stored func() runtime.Object) bool {
	return r.kind.ApplyRewriter != nil && r.kind.ApplyRewriter.RewriteApply(body, func() T {
		object, _ := stored().(T)
		return object
	})
}

// AddToScheme implements Definition.
func (r *Resource[T]) AddToScheme(scheme *runtime.Scheme) error {
	for _, subresource := range r.Subresources() {
		if err := subresource.AddToScheme(scheme); err != nil {
			return err
		}
	}
	if r.kind.Defaulter != nil {
		scheme.AddTypeDefaultingFunc(r.kind.New(), func(obj any) { r.kind.Defaulter.Default(obj.(T)) })
		scheme.AddTypeDefaultingFunc(r.kind.NewList(), r.defaultList)
	}
	gvk := v1alpha1.SchemeGroupVersion.WithKind(r.kind.info.Kind)
	return scheme.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) {
		if _, ok := r.kind.selectableFields(r.kind.New())[label]; ok {
			return label, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector: only %q", label, r.kind.selectableNames())
	})
}

func (r *Resource[T]) defaultList(list any) {
	_ = meta.EachListItem(list.(runtime.Object), func(obj runtime.Object) error { // the callback never fails
		r.kind.Defaulter.Default(obj.(T))
		return nil
	})
}

// Open creates the store of the main resource, and a shallow copy of it whose update changes the
// status only.
func (r *Resource[T]) Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter,
	authorizer Authorizer,
) (Storage, error) {
	kind := r.kind
	main := newStrategy(kind, scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return kind.New() },
		NewListFunc:               kind.NewList,
		PredicateFunc:             kind.match,
		DefaultQualifiedResource:  v1alpha1.Resource(kind.info.Plural),
		SingularQualifiedResource: v1alpha1.Resource(kind.info.Singular),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            printers.Table{Columns: kind.info.Columns},
		TTLFunc:                   kind.beforeWrite(false),
		DeleteCollectionWorkers:   8,
	}
	kind.observe(store)
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: kind.attributes})
	if err != nil {
		return Storage{}, fmt.Errorf("opening the store of %s: %w", kind.info.Plural, err)
	}
	r.store = store
	status := *store
	status.UpdateStrategy = statusStrategy[T]{main}
	status.ResetFieldsStrategy = statusStrategy[T]{main}
	locks, auth := newObjectLocks(), authorization[T]{kind, authorizer}
	objects := &Authorized[T]{
		&REST[T]{Store: store, dryRun: kind.forDryRun(store), kind: kind, locks: locks}, auth,
	}
	statuses := &AuthorizedStatus[T]{
		&StatusREST[T]{store: &status, dryRun: kind.forDryRun(&status), kind: kind, locks: locks}, auth,
	}
	return Storage{Main: objects, Status: statuses, Subresources: r.openSubresources(objects, statuses)}, nil
}

// observe connects the kind's observer to the store, after the durable write.
func (k *kind[T]) observe(store *genericregistry.Store) {
	if k.Observer == nil {
		return
	}
	store.AfterCreate = func(obj runtime.Object, options *metav1.CreateOptions) {
		if len(options.DryRun) == 0 {
			k.notify(obj.(T), false)
		}
	}
	// Not BeginUpdate: the function that it returns is called before the write.
	store.AfterUpdate = func(obj runtime.Object, options *metav1.UpdateOptions) {
		if len(options.DryRun) == 0 {
			k.notify(obj.(T), false)
		}
	}
	store.AfterDelete = func(obj runtime.Object, options *metav1.DeleteOptions) {
		if len(options.DryRun) == 0 {
			k.notify(obj.(T), true)
		}
	}
}

// notify notifies the observer of a write, and then the function set with OnStored.
func (k *kind[T]) notify(obj T, gone bool) {
	if gone {
		k.Observer.Remove(obj)
	} else {
		k.Observer.Put(obj)
	}
	if k.onStored != nil {
		k.onStored(obj, gone)
	}
}

func (k *kind[T]) match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
}

func (k *kind[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("not a %s: %T", k.info.Kind, obj)
	}
	return object.GetLabels(), k.selectableFields(object), nil
}

func (k *kind[T]) selectableFields(object T) fields.Set {
	set := fields.Set{"metadata.name": object.GetName()}
	if !k.info.ClusterScoped {
		set["metadata.namespace"] = object.GetNamespace()
	}
	if k.Selectable != nil {
		for name, value := range k.Selectable.Fields(object) {
			set[name] = value
		}
	}
	return set
}

func (k *kind[T]) selectableNames() []string {
	set := k.selectableFields(k.New())
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
