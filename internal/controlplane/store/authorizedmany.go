package store

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Deletions mostly wait for the store, which commits concurrent writes together.
const (
	deletePageSize       = 500
	maxConcurrentDeletes = 32
)

// DeleteCollection deletes the objects that the selectors match and the caller may delete. Each
// object is deleted like a single one, so that observers are notified of it even if a later
// deletion fails.
func (g *Authorized[T]) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions, list *metav1internal.ListOptions,
) (runtime.Object, error) {
	if err := completeDeleteOptions(ctx, options); err != nil {
		return nil, err
	}
	page := &metav1internal.ListOptions{}
	if list != nil {
		page = list.DeepCopy()
	}
	limited := page.Limit > 0
	if !limited {
		page.Limit = deletePageSize
	}
	var first runtime.Object
	var all []runtime.Object
	for {
		out, err := g.REST.List(ctx, page)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = out
		}
		items, err := meta.ExtractList(out)
		if err != nil {
			return nil, err
		}
		deleted, err := g.deleteAll(ctx, items, validate, options)
		if err != nil {
			return nil, err
		}
		all = append(all, deleted...)
		more, err := meta.ListAccessor(out)
		if err != nil {
			return nil, err
		}
		if limited || more.GetContinue() == "" {
			return g.listOf(first, all, limited) // the objects as they were before the deletion
		}
		page.Continue, page.ResourceVersion, page.ResourceVersionMatch = more.GetContinue(), "", ""
	}
}

// listOf returns a list with these items and the version of another list, and with its continue
// token if the list continues. The number of remaining items is left out, because it would count
// hidden objects.
func (g *Authorized[T]) listOf(like runtime.Object, items []runtime.Object, hasMore bool) (runtime.Object, error) {
	out := g.kind.NewList()
	from, err := meta.ListAccessor(like)
	if err != nil {
		return nil, err
	}
	to, err := meta.ListAccessor(out)
	if err != nil {
		return nil, err
	}
	to.SetResourceVersion(from.GetResourceVersion())
	if hasMore {
		to.SetContinue(from.GetContinue())
	}
	return out, meta.SetList(out, items)
}

func (g *Authorized[T]) deleteAll(ctx context.Context, items []runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions,
) ([]runtime.Object, error) {
	filter, ok := g.auth.filter(ctx, "delete")
	if !ok {
		return nil, nil
	}
	deletes, deleteCtx := errgroup.WithContext(ctx)
	deletes.SetLimit(maxConcurrentDeletes)
	kept := items[:0]
	for _, obj := range items {
		object, isObject := obj.(T)
		if !isObject || (filter != nil && !filter(g.kind.scope(object))) {
			continue
		}
		kept = append(kept, obj)
		deletes.Go(func() error {
			// The strategy writes into the options.
			_, _, err := g.Delete(deleteCtx, object.GetName(), validate, options.DeepCopy())
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return kept, deletes.Wait()
}

// Watch streams changes of the objects that the caller may see. Permissions and credentials are
// checked again with every event, so that a watch does not outlive them.
func (g *Authorized[T]) Watch(ctx context.Context, options *metav1internal.ListOptions) (watch.Interface, error) {
	source, err := g.REST.Watch(ctx, options)
	if err != nil || g.auth.allowsAll() {
		return source, err
	}
	w := &authorizedWatch[T]{
		source: source, auth: g.auth, ctx: ctx,
		result: make(chan watch.Event), done: make(chan struct{}),
	}
	go w.run()
	return w, nil
}

type authorizedWatch[T Object] struct {
	source watch.Interface
	auth   authorization[T]
	ctx    context.Context //nolint:containedctx // of the call that the watch serves
	result chan watch.Event
	done   chan struct{}
	once   sync.Once
}

// ResultChan implements watch.Interface.
func (w *authorizedWatch[T]) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *authorizedWatch[T]) Stop() {
	w.once.Do(func() { close(w.done) })
	w.source.Stop()
}

func (w *authorizedWatch[T]) run() {
	defer close(w.result)
	for event := range w.source.ResultChan() {
		filter, ok := w.auth.filter(w.ctx, "watch")
		if !ok {
			status := apierrors.NewUnauthorized("the credential or permission of this watch has expired; " +
				"authenticate again and restart the watch").Status()
			event = watch.Event{Type: watch.Error, Object: &status}
		} else if filter != nil && event.Type != watch.Bookmark && event.Type != watch.Error {
			object, isObject := unwrap(event.Object).(T)
			if !isObject || !filter(w.auth.kind.scope(object)) {
				continue
			}
		}
		select {
		case w.result <- event:
		case <-w.done:
			return
		}
		if !ok {
			w.source.Stop()
			return
		}
	}
}
