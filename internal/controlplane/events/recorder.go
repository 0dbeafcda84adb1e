package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/flowcontrol"

	"freshet/api/v1alpha1"
)

// Limits of a recorder, which keep events cheap compared to the steps that they report.
const (
	queueSize  = 1024 // queued events
	perSecond  = 50
	burst      = 500
	maxMessage = 1024
)

const component = "freshet"

// Recorder writes events asynchronously.
type Recorder struct {
	events *Events
	log    *slog.Logger
	queue  chan *corev1.Event
	limit  flowcontrol.RateLimiter
}

// NewRecorder creates a recorder; Run writes the events.
func (e *Events) NewRecorder(log *slog.Logger) *Recorder {
	return &Recorder{
		events: e, log: log, queue: make(chan *corev1.Event, queueSize),
		limit: flowcontrol.NewTokenBucketRateLimiter(perSecond, burst),
	}
}

// Record queues an event about an object. It does not block: excess events are dropped.
func (r *Recorder) Record(kind string, regarding metav1.Object, warning bool, reason, message string) {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: regarding.GetNamespace(),
			Name:      name(kind, regarding, reason, message),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Namespace: regarding.GetNamespace(),
			Name: regarding.GetName(),
			UID:  regarding.GetUID(), ResourceVersion: regarding.GetResourceVersion(),
		},
		Type: corev1.EventTypeNormal, Reason: reason, Message: shorten(message),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
	}
	if warning {
		event.Type = corev1.EventTypeWarning
	}
	if regarding.GetNamespace() == "" || !r.limit.TryAccept() {
		return
	}
	select {
	case r.queue <- event:
	default:
	}
}

// name returns the same name for the same event, so that a repetition is counted and not stored
// again.
func name(kind string, regarding metav1.Object, reason, message string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{kind, string(regarding.GetUID()), reason, message}, "\x00")))
	prefix := strings.ToLower(regarding.GetName())
	return prefix[:min(len(prefix), 200)] + "." + hex.EncodeToString(sum[:8])
}

func shorten(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	return message
}

// Run writes queued events until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case event := <-r.queue:
			if err := r.write(ctx, event); err != nil && ctx.Err() == nil {
				r.log.Debug("writing an event failed; dropping it", slog.String("reason", event.Reason),
					slog.String("object", event.Namespace+"/"+event.InvolvedObject.Name),
					slog.Any("error", err))
			}
		case <-ctx.Done():
			return
		}
	}
}

const writeTimeout = 5 * time.Second

// write creates the event, or increments its count. Replicas that saw the same version of the
// object count it once.
func (r *Recorder) write(ctx context.Context, event *corev1.Event) error {
	ctx, cancel := context.WithTimeout(request.WithNamespace(ctx, event.Namespace), writeTimeout)
	defer cancel()
	_, err := r.events.store.Create(ctx, event.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, _, err = r.events.store.Update(ctx, event.Name,
		rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			existing, ok := old.(*corev1.Event)
			if !ok {
				return nil, fmt.Errorf("stored object is a %T and not an event", old)
			}
			again := existing.DeepCopy()
			if existing.InvolvedObject.ResourceVersion != event.InvolvedObject.ResourceVersion {
				again.Count++
				again.LastTimestamp = event.LastTimestamp
				again.InvolvedObject.ResourceVersion = event.InvolvedObject.ResourceVersion
			}
			return again, nil
		}), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
