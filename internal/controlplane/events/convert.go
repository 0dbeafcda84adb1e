package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// toEventsV1 converts a core/v1 event to events.k8s.io/v1.
func toEventsV1(event *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		ObjectMeta:               *event.ObjectMeta.DeepCopy(),
		EventTime:                event.EventTime,
		ReportingController:      event.ReportingController,
		ReportingInstance:        event.ReportingInstance,
		Action:                   event.Action,
		Reason:                   event.Reason,
		Regarding:                event.InvolvedObject,
		Related:                  event.Related,
		Note:                     event.Message,
		Type:                     event.Type,
		DeprecatedSource:         event.Source,
		DeprecatedFirstTimestamp: event.FirstTimestamp,
		DeprecatedLastTimestamp:  event.LastTimestamp,
		DeprecatedCount:          event.Count,
	}
	if event.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: event.Series.Count, LastObservedTime: event.Series.LastObservedTime}
	}
	return out
}

func toEventsV1List(list *corev1.EventList) *eventsv1.EventList {
	out := &eventsv1.EventList{ListMeta: list.ListMeta, Items: make([]eventsv1.Event, 0, len(list.Items))}
	for i := range list.Items {
		out.Items = append(out.Items, *toEventsV1(&list.Items[i]))
	}
	return out
}

// printer prints events of either version like kubectl get events.
type printer struct{}

var table printer

var columns = []metav1.TableColumnDefinition{
	{Name: "Last Seen", Type: "string", Description: "How long ago it last happened."},
	{Name: "Type", Type: "string", Description: "Normal or Warning."},
	{Name: "Reason", Type: "string", Description: "What happened, in one word."},
	{Name: "Object", Type: "string", Description: "What it happened to."},
	{Name: "Message", Type: "string", Description: "What happened."},
	{Name: "Name", Type: "string", Format: "name", Priority: 1, Description: "Name of the event."},
	{Name: "Count", Type: "integer", Priority: 1, Description: "How often it happened."},
}

// ConvertToTable implements rest.TableConvertor.
func (printer) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		out.ColumnDefinitions = columns
	}
	add := func(obj runtime.Object) error {
		event, ok := obj.(*eventsv1.Event)
		if old, isOld := obj.(*corev1.Event); isOld {
			event, ok = toEventsV1(old), true
		}
		if ok {
			regarding := event.Regarding.Kind + "/" + event.Regarding.Name
			out.Rows = append(out.Rows, metav1.TableRow{
				Cells: []any{
					duration.HumanDuration(time.Since(event.DeprecatedLastTimestamp.Time)), event.Type,
					event.Reason, regarding,
					event.Note, event.Name, int64(event.DeprecatedCount),
				},
				Object: runtime.RawExtension{Object: obj},
			})
		}
		return nil
	}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(),
			list.GetRemainingItemCount()
		return out, meta.EachListItem(object, add)
	}
	return out, add(object)
}
