package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Readable returns a function that reports whether the caller of ctx may read events about an
// object of the namespace.
type Readable func(ctx context.Context, namespace string) func(regarding corev1.ObjectReference) bool

// REST is the resource events of one API group: get, list and watch.
type REST struct {
	events   *Events
	readable Readable
	eventsV1 bool // serves events.k8s.io/v1
}

var (
	_ rest.Getter               = (*REST)(nil)
	_ rest.Lister               = (*REST)(nil)
	_ rest.Watcher              = (*REST)(nil)
	_ rest.Scoper               = (*REST)(nil)
	_ rest.ShortNamesProvider   = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// Core creates the resource of core/v1.
func (e *Events) Core(readable Readable) *REST { return &REST{e, readable, false} }

// EventsV1 creates the resource of events.k8s.io/v1.
func (e *Events) EventsV1(readable Readable) *REST { return &REST{e, readable, true} }

// New implements rest.Storage.
func (r *REST) New() runtime.Object {
	if r.eventsV1 {
		return &eventsv1.Event{}
	}
	return &corev1.Event{}
}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object {
	if r.eventsV1 {
		return &eventsv1.EventList{}
	}
	return &corev1.EventList{}
}

// Destroy implements rest.Storage. The core resource owns the store.
func (r *REST) Destroy() {
	if !r.eventsV1 {
		r.events.store.Destroy()
	}
}

// NamespaceScoped implements rest.Scoper.
func (*REST) NamespaceScoped() bool { return true }

// ShortNames implements rest.ShortNamesProvider.
func (*REST) ShortNames() []string { return []string{"ev"} }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "event" }

// ConvertToTable implements rest.TableConvertor.
func (*REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return table.ConvertToTable(ctx, object, options)
}

// Get reads an event. It returns 404 for an event that the caller may not read.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	out, err := r.events.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	event, ok := out.(*corev1.Event)
	if !ok || !r.readable(ctx, request.NamespaceValue(ctx))(event.InvolvedObject) {
		return nil, apierrors.NewNotFound(corev1.Resource("events"), name)
	}
	if r.eventsV1 {
		return toEventsV1(event), nil
	}
	return event, nil
}

// List reads the events about objects that the caller may read.
func (r *REST) List(ctx context.Context, options *metav1internal.ListOptions) (runtime.Object, error) {
	out, err := r.events.store.List(ctx, options)
	if err != nil {
		return nil, err
	}
	all, ok := out.(*corev1.EventList)
	if !ok {
		return out, nil
	}
	readable := r.readable(ctx, request.NamespaceValue(ctx))
	list := &corev1.EventList{ListMeta: all.ListMeta, Items: make([]corev1.Event, 0, len(all.Items))}
	for i := range all.Items {
		if readable(all.Items[i].InvolvedObject) {
			list.Items = append(list.Items, all.Items[i])
		}
	}
	list.RemainingItemCount = nil // it would count the hidden events
	if r.eventsV1 {
		return toEventsV1List(list), nil
	}
	return list, nil
}

// Watch streams the events about objects that the caller may read. The permission is checked for
// each event, so that it can be revoked during the watch.
func (r *REST) Watch(ctx context.Context, options *metav1internal.ListOptions) (watch.Interface, error) {
	all, err := r.events.store.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	namespace := request.NamespaceValue(ctx)
	return watch.Filter(all, func(in watch.Event) (watch.Event, bool) {
		event, ok := in.Object.(*corev1.Event)
		switch {
		case !ok:
			return in, true // an error
		case in.Type == watch.Bookmark:
		case !r.readable(ctx, namespace)(event.InvolvedObject):
			return in, false
		}
		if r.eventsV1 {
			in.Object = toEventsV1(event)
		}
		return in, true
	}), nil
}
