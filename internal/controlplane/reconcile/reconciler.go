package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Reconciler brings the objects of one kind to where their spec wants them.
type Reconciler[T metav1.Object] struct {
	name     string
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	log      *slog.Logger
	work     Work[T]
	// Gone, when set, is called for names that were woken and are no more.
	Gone func(ctx context.Context, namespace, name string) error
}

// Work looks at one object, a copy of its own, and does what is due. It asks to
// be called again after a time, 0 for not before something changes.
type Work[T metav1.Object] func(ctx context.Context, obj T) (again time.Duration, err error)

// New makes a reconciler that is woken by every change of the informer's objects.
func New[T metav1.Object](name string, informer cache.SharedIndexInformer, log *slog.Logger,
	work Work[T],
) (*Reconciler[T], error) {
	r := &Reconciler[T]{
		name: name, informer: informer, work: work,
		queue: NewQueue[types.NamespacedName](name),
		log:   log.With(slog.String("controller", name)),
	}
	if err := Watch(informer, r.Wake); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Watch calls wake with every object that is added, changed or deleted.
func Watch(informer cache.SharedIndexInformer, wake func(obj metav1.Object)) error {
	return Follow(informer, wake, wake)
}

// Wake looks at an object soon.
func (r *Reconciler[T]) Wake(obj metav1.Object) { r.WakeName(obj.GetNamespace(), obj.GetName()) }

// WakeName looks at an object soon.
func (r *Reconciler[T]) WakeName(namespace, name string) {
	r.queue.Add(types.NamespacedName{Namespace: namespace, Name: name})
}

// Run works until the context ends.
func (r *Reconciler[T]) Run(ctx context.Context, workers int) error {
	if !cache.WaitForCacheSync(ctx.Done(), r.informer.HasSynced) {
		return context.Cause(ctx)
	}
	return Run(ctx, r.queue, workers, r.log, r.reconcile)
}

func (r *Reconciler[T]) reconcile(ctx context.Context, at types.NamespacedName) error {
	cached, ok, err := r.informer.GetIndexer().GetByKey(at.String())
	if err != nil {
		return err
	}
	if !ok {
		if r.Gone != nil {
			return r.Gone(ctx, at.Namespace, at.Name)
		}
		return nil
	}
	// The cache is shared; work gets a copy that it may change.
	shared, ok := cached.(runtime.Object)
	if !ok {
		return fmt.Errorf("%s: the cache holds a %T", r.name, cached)
	}
	object, ok := shared.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("%s: the cache holds a %T", r.name, cached)
	}
	again, err := r.work(ctx, object)
	if err == nil && again > 0 {
		r.queue.AddAfter(at, again)
	}
	return err
}

// Revision is an object's resourceVersion as a number; 0 when it has none.
func Revision(obj metav1.Object) int64 {
	n, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Deleting says whether an object's deletion is due: asked for, and with its
// grace period over. In the grace period an object lives on.
func Deleting(obj metav1.Object) bool {
	if obj.GetDeletionTimestamp() == nil {
		return false
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0 || !GraceEnd(obj).After(time.Now())
}

// GraceEnd is when the grace period of an object that is being deleted is over.
// The timestamp has whole seconds, its fraction is cut off: a second more, and no
// period ends early.
func GraceEnd(obj metav1.Object) time.Time { return obj.GetDeletionTimestamp().Add(time.Second) }
