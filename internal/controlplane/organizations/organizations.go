// Package organizations stores the list of organizations, which the API serves as core/v1
// Namespaces (docs/spec/resources.md#r14).
//
// The first object in an organization creates the organization (admission.go), unless that is
// disabled. A system administrator may also create an empty organization, and delete one without
// objects. All other callers can read the organization that they belong to (rest.go). The package
// stores nothing else about an organization; the objects in it belong to the kinds.
package organizations

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"freshet/internal/controlplane/printers"
)

// Organizations is the stored list.
type Organizations struct{ store *genericregistry.Store }

// ReadinessCheck implements rest.StorageWithReadiness. It returns an error until the list is
// cached.
func (o *Organizations) ReadinessCheck() error { return o.store.ReadinessCheck() }

// Open opens the store.
func Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*Organizations, error) {
	resource := corev1.Resource("namespaces")
	rules := strategy{scheme, names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:               func() runtime.Object { return &corev1.NamespaceList{} },
		PredicateFunc:             match,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: corev1.Resource("namespace"),
		CreateStrategy:            rules,
		UpdateStrategy:            rules, // the store requires one; the API serves no updates
		DeleteStrategy:            rules,
		TableConvertor: printers.Table{Columns: []printers.Column{{
			Name: "Status", Description: "The status of the organization.",
			Value: func(obj runtime.Object) any { return string(obj.(*corev1.Namespace).Status.Phase) },
		}}},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("opening the store of organizations: %w", err)
	}
	return &Organizations{store: store}, nil
}

// Has reports whether an organization exists.
func (o *Organizations) Has(ctx context.Context, name string) (bool, error) {
	// The first read uses the watch cache. An organization that was just created may only be in the
	// store.
	_, err := o.store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		_, err = o.store.Get(ctx, name, &metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Ensure creates an organization if it does not exist, and reports whether it has created it.
func (o *Organizations) Ensure(ctx context.Context, name string) (bool, error) {
	if exists, err := o.Has(ctx, name); exists || err != nil {
		return false, err
	}
	// Not in the namespace of the object that is about to be created.
	ctx = request.WithNamespace(ctx, metav1.NamespaceNone)
	_, err := o.store.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

func match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, nil, fmt.Errorf("not a Namespace: %T", obj)
	}
	return namespace.Labels,
		fields.Set{
			"metadata.name": namespace.Name, "name": namespace.Name,
			"status.phase": string(namespace.Status.Phase),
		}, nil
}

// FieldLabel implements the conversion of field selectors.
func FieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "name", "status.phase":
		return label, value, nil
	}
	return "", "", fmt.Errorf("%q is not a known field selector: only \"metadata.name\", \"status.phase\"", label)
}

// strategy implements the rules for organizations.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                            { return false }
func (strategy) Canonicalize(runtime.Object)                                      {}
func (strategy) AllowCreateOnUpdate(context.Context) bool                         { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool                    { return false }
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// PrepareForCreate sets what the service decides.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	namespace.Spec = corev1.NamespaceSpec{}
	namespace.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	namespace.Finalizers, namespace.OwnerReferences = nil, nil
	if namespace.Labels == nil {
		namespace.Labels = map[string]string{}
	}
	namespace.Labels[corev1.LabelMetadataName] = namespace.Name
}

// Validate holds names to what an organization may be called.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	namespace := obj.(*corev1.Namespace)
	var errs field.ErrorList
	for _, detail := range validation.IsDNS1123Label(namespace.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), namespace.Name, detail))
	}
	return errs
}
