// Package events stores the steps of the controllers as Events, for kubectl describe and similar
// tools: one Event per object, reason and message, with a count, for an hour
// (docs/spec/resources.md#r14).
//
// Events are best effort: they are written asynchronously (recorder.go) at a bounded rate, and
// excess events are dropped. They are stored as core/v1 and served as events.k8s.io/v1 as well
// (rest.go, convert.go). Callers can read but not write them. internal/controlplane/reconcile
// decides which steps become Events.
package events

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
)

// lifetime is how long an event is kept after its last occurrence, in seconds. The store attaches
// it to a lease.
const lifetime = 3600

// Events is the store of events.
type Events struct{ store *genericregistry.Store }

// ReadinessCheck implements rest.StorageWithReadiness. It returns an error until the events are
// cached.
func (e *Events) ReadinessCheck() error { return e.store.ReadinessCheck() }

// Open opens the store.
func Open(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*Events, error) {
	rules := strategy{scheme, names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &corev1.Event{} },
		NewListFunc:               func() runtime.Object { return &corev1.EventList{} },
		PredicateFunc:             match,
		TTLFunc:                   func(runtime.Object, uint64, bool) (uint64, error) { return lifetime, nil },
		DefaultQualifiedResource:  corev1.Resource("events"),
		SingularQualifiedResource: corev1.Resource("event"),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		TableConvertor:            table,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes}); err != nil {
		return nil, fmt.Errorf("opening the store of events: %w", err)
	}
	return &Events{store: store}, nil
}

func match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	event, ok := obj.(*corev1.Event)
	if !ok {
		return nil, nil, fmt.Errorf("not an Event: %T", obj)
	}
	return event.Labels, selectable(event), nil
}

func selectable(event *corev1.Event) fields.Set {
	regarding := event.InvolvedObject
	return fields.Set{
		"metadata.name":                  event.Name,
		"metadata.namespace":             event.Namespace,
		"involvedObject.kind":            regarding.Kind,
		"involvedObject.namespace":       regarding.Namespace,
		"involvedObject.name":            regarding.Name,
		"involvedObject.uid":             string(regarding.UID),
		"involvedObject.apiVersion":      regarding.APIVersion,
		"involvedObject.resourceVersion": regarding.ResourceVersion,
		"involvedObject.fieldPath":       regarding.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         event.Source.Component,
		"type":                           event.Type,
	}
}

// CoreFieldLabel converts the field selectors of core/v1.
func CoreFieldLabel(label, value string) (string, string, error) {
	if _, ok := selectable(&corev1.Event{})[label]; ok {
		return label, value, nil
	}
	return "", "", fmt.Errorf("%q is not a known field selector of events", label)
}

// eventsV1Selectors maps the selectors of events.k8s.io/v1 to the names of core/v1 where these differ.
var eventsV1Selectors = map[string]string{
	"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace",
	"regarding.name": "involvedObject.name", "regarding.uid": "involvedObject.uid",
	"regarding.apiVersion": "involvedObject.apiVersion", "regarding.resourceVersion": "involvedObject.resourceVersion",
	"regarding.fieldPath": "involvedObject.fieldPath", "reportingController": "reportingComponent",
}

// EventsV1FieldLabel converts the field selectors of events.k8s.io/v1.
func EventsV1FieldLabel(label, value string) (string, string, error) {
	if name, ok := eventsV1Selectors[label]; ok {
		return name, value, nil
	}
	return CoreFieldLabel(label, value)
}

// strategy accepts every event as the recorder writes it.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                            { return true }
func (strategy) Canonicalize(runtime.Object)                                      {}
func (strategy) AllowCreateOnUpdate(context.Context) bool                         { return true }
func (strategy) AllowUnconditionalUpdate(context.Context) bool                    { return true }
func (strategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (strategy) Validate(context.Context, runtime.Object) field.ErrorList         { return nil }
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
