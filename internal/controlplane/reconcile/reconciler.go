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

// Reconciler reconciles the objects of one kind with their spec.
type Reconciler[T metav1.Object] struct {
	name     string
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	log      *slog.Logger
	handler  Handler[T]
	deletion DeletionHandler // nil if the handler does not implement it
}

// Handler reconciles single objects.
type Handler[T metav1.Object] interface {
	// Reconcile reconciles one object, which is a copy that it may change. It returns the delay after
	// which to call it again, or 0 to wait for the next change.
	Reconcile(ctx context.Context, obj T) (again time.Duration, err error)
}

// DeletionHandler is implemented by handlers with work to do after objects are deleted.
type DeletionHandler interface {
	// ReconcileDeleted is called for queued names whose object no longer exists.
	ReconcileDeleted(ctx context.Context, namespace, name string) error
}

// New creates a reconciler that queues every changed object of the informer. It detects whether the
// handler is a DeletionHandler too.
func New[T metav1.Object](name string, informer cache.SharedIndexInformer, log *slog.Logger,
	handler Handler[T],
) (*Reconciler[T], error) {
	r := &Reconciler[T]{
		name: name, informer: informer, handler: handler,
		queue: NewQueue[types.NamespacedName](name),
		log:   log.With(slog.String("controller", name)),
	}
	r.deletion, _ = handler.(DeletionHandler)
	if err := Watch(informer, r.Enqueue); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Watch calls a function with every object that is added, changed or deleted.
func Watch(informer cache.SharedIndexInformer, enqueue func(obj metav1.Object)) error {
	return Follow(informer, enqueue, enqueue)
}

// Enqueue queues an object.
func (r *Reconciler[T]) Enqueue(obj metav1.Object) { r.EnqueueName(obj.GetNamespace(), obj.GetName()) }

// EnqueueName queues an object by name.
func (r *Reconciler[T]) EnqueueName(namespace, name string) {
	r.queue.Add(types.NamespacedName{Namespace: namespace, Name: name})
}

// Run reconciles until the context ends.
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
		if r.deletion != nil {
			return r.deletion.ReconcileDeleted(ctx, at.Namespace, at.Name)
		}
		return nil
	}
	// The cache is shared; the handler gets a copy that it may change.
	shared, ok := cached.(runtime.Object)
	if !ok {
		return fmt.Errorf("%s: unexpected type %T in the cache", r.name, cached)
	}
	object, ok := shared.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("%s: unexpected type %T in the cache", r.name, cached)
	}
	again, err := r.handler.Reconcile(ctx, object)
	if err == nil && again > 0 {
		r.queue.AddAfter(at, again)
	}
	return err
}

// Revision returns an object's resourceVersion as a number, or 0 if it has none.
func Revision(obj metav1.Object) int64 {
	n, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Deleting reports whether an object is being deleted and its grace period has ended. During the
// grace period the object stays active.
func Deleting(obj metav1.Object) bool {
	if obj.GetDeletionTimestamp() == nil {
		return false
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0 || !GraceEnd(obj).After(time.Now())
}

// Ended reports whether a deletion without a remaining grace period was accepted, so that the object
// must have no effect any more. It does not read the clock: when a grace period ends, the garbage
// controller deletes the object again, without one.
func Ended(obj metav1.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return obj.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0)
}

// GraceEnd returns the end of the grace period of an object that is being deleted. The timestamp is
// truncated to whole seconds; the added second makes sure that no grace period ends early.
func GraceEnd(obj metav1.Object) time.Time { return obj.GetDeletionTimestamp().Add(time.Second) }
