package budget

import (
	"context"
	"errors"
	"strconv"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/tools/cache"
)

// Transformers wraps other transformers and measures their output, which is what etcd stores.
func (g *Guard) Transformers(next value.ResourceTransformers) value.ResourceTransformers {
	return transformers{g, next}
}

type transformers struct {
	guard *Guard
	next  value.ResourceTransformers
}

// TransformerForResource implements value.ResourceTransformers.
func (t transformers) TransformerForResource(resource schema.GroupResource) value.Transformer {
	var next value.Transformer = Unchanged{}
	if t.next != nil {
		next = t.next.TransformerForResource(resource)
	}
	return measuring{t.guard, next}
}

type measuring struct {
	guard *Guard
	value.Transformer
}

// TransformToStorage implements value.Transformer.
func (m measuring) TransformToStorage(ctx context.Context, data []byte, at value.Context) ([]byte, error) {
	out, err := m.Transformer.TransformToStorage(ctx, data, at)
	w, ok := ctx.Value(writeKey{}).(*write)
	if err != nil || !ok {
		return out, err
	}
	key := at.AuthenticatedData()
	w.rejection = m.guard.admit(ctx, w, string(key), sizeOf(key, out))
	return out, w.rejection
}

// Unchanged is a transformer that returns the data as it is.
type Unchanged struct{}

// TransformFromStorage implements value.Transformer.
func (Unchanged) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	return data, false, nil
}

// TransformToStorage implements value.Transformer.
func (Unchanged) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return data, nil
}

// RESTOptions makes the guard check every store that is opened with these options.
func (g *Guard) RESTOptions(next generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return restOptions{next, g}
}

type restOptions struct {
	generic.RESTOptionsGetter
	guard *Guard
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o restOptions) GetRESTOptions(resource schema.GroupResource,
	example runtime.Object,
) (generic.RESTOptions, error) {
	options, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string,
		keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
		attrs storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		inner, destroy, err := decorate(config, prefix, keyFunc, newFunc, newListFunc, attrs, trigger, indexers)
		return &guarded{inner, o.guard}, destroy, err
	}
	return options, nil
}

// guarded is a store whose writes the guard checks. The transformer measuring makes the decision.
type guarded struct {
	storage.Interface
	guard *Guard
}

// Create implements storage.Interface.
func (s *guarded) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	ctx, w := writeOf(ctx)
	return s.settle(w, out, s.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate implements storage.Interface.
func (s *guarded) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	ctx, w := writeOf(ctx)
	return s.settle(w, destination, s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		tryUpdate, cached))
}

// writeOf returns the write of a context, or creates one.
func writeOf(ctx context.Context) (context.Context, *write) {
	w, ok := ctx.Value(writeKey{}).(*write)
	if !ok {
		w = &write{}
		ctx = context.WithValue(ctx, writeKey{}, w)
	}
	w.rejection = nil
	return ctx, w
}

// settle ends a write: its hold becomes stored usage, or is released. Errors of a full etcd get the
// same text as those of the guard.
func (s *guarded) settle(w *write, out runtime.Object, err error) error {
	rejection := w.rejection
	if err == nil && w.held.key != "" {
		if revision, ok := revisionOf(out); ok {
			s.guard.usage.settle(&w.held, s.guard.parseKey(w.held.key), revision)
			return nil
		}
	}
	size := w.held.size
	s.guard.usage.release(&w.held)
	switch {
	case err == nil:
		return nil
	case rejection != nil:
		return rejection
	case errors.Is(err, rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrGRPCNoSpace):
		return s.guard.exhausted()
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrGRPCRequestTooLarge):
		return apierrors.NewRequestEntityTooLargeError("object would take " + strconv.FormatInt(size, 10) +
			" bytes in the store, which is more than etcd accepts")
	}
	return err
}

// exhausted returns the error for an etcd that has no space left.
func (g *Guard) exhausted() error {
	if g.store == nil {
		return unavailable("etcd is full and rejects writes; see docs/howto/operate.md")
	}
	g.store.RequestCompaction()
	return unavailable(nearlyFull(g.store.Space()))
}

func revisionOf(obj runtime.Object) (int64, bool) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return 0, false
	}
	revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	return revision, err == nil
}

// Delete implements storage.Interface.
func (s *guarded) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if err == nil {
		if revision, ok := revisionOf(out); ok {
			s.guard.usage.remove(s.guard.keyOf(key), revision)
		}
	}
	return err
}
