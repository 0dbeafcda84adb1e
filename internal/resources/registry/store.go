package registry

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
	"freshet/internal/access"
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
	Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter, gate Gate) (Storage, error)
	// Resource is the kind's plural name; Namespaced its scope.
	Resource() (plural string, namespaced bool)
	// IsReadOnly says that only the service writes the kind.
	IsReadOnly() bool

	// Place says where an object of the kind lies, for permissions.
	Place(ctx context.Context, namespace, name string) access.Scope

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
	_ = meta.EachListItem(list.(runtime.Object), func(obj runtime.Object) error { // the callback never fails
		d.kind.Default(obj.(T))
		return nil
	})
}

// Open builds the store twice: the main resource, and a shallow copy whose
// update touches status only.
func (d *definition[T]) Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter, gate Gate) (Storage, error) {
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
	turns := newTurns()
	return Storage{
		Plural: kind.Plural,
		Main:   &Guarded[T]{&REST[T]{Store: store, kind: kind, turns: turns}, doorman[T]{kind, gate}},
		Status: &GuardedStatus[T]{&StatusREST[T]{store: &status, kind: kind, turns: turns}, doorman[T]{kind, gate}},
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
		// Not BeginUpdate: what that returns is called before the write.
		store.AfterUpdate = func(obj runtime.Object, options *metav1.UpdateOptions) {
			if len(options.DryRun) == 0 {
				k.Updated(obj.(T))
			}
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
	slices.Sort(names)
	return names
}
