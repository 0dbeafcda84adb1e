// Package reconcile is what every kind's reconciler runs on: a work queue with
// workers, retries and an end that waits for what is in hand (loop.go), objects
// woken by the changes of informers (reconciler.go, follow.go, index.go), and
// retries that show themselves in status (backoff.go).
//
// What a kind does to its objects stands in its own folder under
// internal/controlplane/kinds. Conditions, finalizers and owner references are written with
// the packages below; garbage collects what deletions leave behind.
package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
)

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// NewQueue makes a queue whose retries start quickly and end slowly.
func NewQueue[T comparable](name string) workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[T]{Name: name},
	)
}

// Run works on the queue until the context ends, then waits for the workers.
func Run[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], workers int,
	log *slog.Logger, work func(context.Context, T) error,
) error {
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for next(ctx, queue, log, work) {
			}
		})
	}
	group.Wait()
	return nil
}

func next[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], log *slog.Logger,
	work func(context.Context, T) error,
) bool {
	it, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(it)
	err := work(ctx, it)
	if err == nil {
		queue.Forget(it)
		return true
	}
	if ctx.Err() == nil {
		// A conflict only means that the cache is behind; the next try sees more.
		level := slog.LevelWarn
		if apierrors.IsConflict(err) {
			level = slog.LevelDebug
		}
		log.LogAttrs(ctx, level, "reconcile failed, trying again", slog.Any("item", it),
			slog.String("error", err.Error()),
			slog.Int("failures", queue.NumRequeues(it)+1))
		queue.AddRateLimited(it)
	}
	return true
}
