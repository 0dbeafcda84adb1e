// Package reconcile is the framework of every kind's reconciler: a work queue with workers, retries
// and a shutdown that waits for running work (loop.go), reconcilers that informers trigger
// (reconciler.go, follow.go, index.go), retries that are visible in the status (backoff.go), and
// Events about changed conditions (recordevents.go).
//
// The logic of a kind is in its own folder under internal/controlplane/kinds. Subpackages write
// conditions, finalizers and owner references; package garbage deletes dependents.
//
// Backoff.mu is the only lock. It protects the attempts and is held for map access only.
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

// NewQueue creates a queue with exponential backoff.
func NewQueue[T comparable](name string) workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[T]{Name: name},
	)
}

// Run processes the queue until the context ends, then waits for the workers.
func Run[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], workers int,
	log *slog.Logger, work func(context.Context, T) error,
) error {
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for next(ctx, queue, log, work) {
			}
		})
	}
	running.Wait()
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
		// A conflict only means that the cache lags; the retry reads a newer version.
		level := slog.LevelWarn
		if apierrors.IsConflict(err) {
			level = slog.LevelDebug
		}
		log.LogAttrs(ctx, level, "reconciling failed; retrying", slog.Any("item", it), slog.Any("error", err),
			slog.Int("failures", queue.NumRequeues(it)+1))
		queue.AddRateLimited(it)
	}
	return true
}
