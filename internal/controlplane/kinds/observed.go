package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/internal/base/errs"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/store"
)

// Change is a write of a kind that affects authentication or authorization. In an ensemble every
// member must apply it before the call that made it returns.
type Change struct {
	Kind   string          `json:"kind"`
	Gone   bool            `json:"gone,omitempty"`
	Object json.RawMessage `json:"object"`
}

// Replicas are the other members of the ensemble.
type Replicas interface {
	// NotifyStored is called with every change that this member has stored. It returns when the
	// other members have applied the change.
	NotifyStored(change Change)
}

// observedKind is a kind with an Observer, for callers that do not have its type.
type observedKind interface {
	name() string
	// load passes all objects of the informers to the Observer.
	load(c *Controllers) error
	// apply applies a change that another member has stored.
	apply(c Change) error
	// catchUp passes all stored objects to the Observer, and removes those that no longer exist.
	catchUp(ctx context.Context, c *Controllers) error
}

// Apply applies a change that another member has stored. It ignores late and repeated changes.
func (s *Set) Apply(c Change) error {
	for _, kind := range s.observed {
		if kind.name() == c.Kind {
			return kind.apply(c)
		}
	}
	return errs.Newf(errs.Invalid, "kind %q has no observer", c.Kind)
}

// CatchUp applies the stored state of all objects, independently of changes that may still arrive.
// It is for a member that was disconnected from the others.
func (c *Controllers) CatchUp(ctx context.Context) error {
	for _, kind := range c.set.observed {
		if err := kind.catchUp(ctx, c); err != nil {
			return fmt.Errorf("reading every stored %s: %w", kind.name(), err)
		}
	}
	return nil
}

// observe connects the writes of a kind with the other members, and their writes with the kind's
// observer.
func observe[T store.Object](s *Set, kind store.Kind[T], resource *store.Resource[T]) {
	observer, ok := kind.(store.Observer[T])
	if !ok {
		return
	}
	o := &observed[T]{
		kind: kind, observer: observer, recent: recentObjects[T]{objects: map[types.UID]recentObject[T]{}},
	}
	if kind.Info().LoadedLast {
		s.observedLast = append(s.observedLast, o)
	} else {
		s.observed = append(s.observed, o)
	}
	if s.opts.Replicas == nil {
		return
	}
	resource.OnStored(func(object T, gone bool) {
		if !gone {
			o.recent.add(object)
		}
		text, err := json.Marshal(object)
		if err != nil {
			panic("kinds: encoding a stored object: " + err.Error()) // the store has encoded it before
		}
		s.opts.Replicas.NotifyStored(Change{Kind: o.name(), Gone: gone, Object: text})
	})
}

// observed implements observedKind.
type observed[T store.Object] struct {
	kind     store.Kind[T]
	observer store.Observer[T]
	recent   recentObjects[T]
}

func (o *observed[T]) name() string { return o.kind.Info().Kind }

func (o *observed[T]) apply(c Change) error {
	object := o.kind.New()
	if err := json.Unmarshal(c.Object, object); err != nil {
		return errs.Newf(errs.Invalid, "decoding a %s of another member: %w", o.name(), err)
	}
	if c.Gone {
		o.observer.Remove(object)
		return nil
	}
	o.recent.add(object)
	o.observer.Put(object)
	return nil
}

func (o *observed[T]) load(c *Controllers) error {
	cached, err := o.cached(c)
	for _, object := range cached {
		o.observer.Put(object)
	}
	return err
}

// cached returns the objects of the informer.
func (o *observed[T]) cached(c *Controllers) ([]T, error) {
	informer, err := c.informer(o.kind.Info().Plural)
	if err != nil {
		return nil, err
	}
	var list []T
	for _, item := range informer.GetStore().List() {
		if object, ok := item.(T); ok {
			list = append(list, object)
		}
	}
	return list, nil
}

func (o *observed[T]) catchUp(ctx context.Context, c *Controllers) error {
	list := o.kind.NewList()
	plural := o.kind.Info().Plural
	if err := c.client.CloudV1alpha1().RESTClient().Get().Resource(plural).Do(ctx).Into(list); err != nil {
		return err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	revision, err := strconv.ParseInt(listMeta.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("parsing the revision of the list: %w", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	stored := make(map[types.UID]bool, len(items))
	for _, item := range items {
		object, ok := item.(T)
		if !ok {
			return fmt.Errorf("unexpected type %T in the list", item)
		}
		stored[object.GetUID()] = true
		o.observer.Put(object)
	}
	existing := o.recent.all()
	cached, err := o.cached(c)
	if err != nil {
		return err
	}
	for _, object := range append(existing, cached...) {
		if !stored[object.GetUID()] && reconcile.Revision(object) <= revision {
			o.observer.Remove(object)
		}
	}
	return nil
}

// recentObjects contains the objects that were passed to the observer and that the informers may not
// have received yet.
type recentObjects[T metav1.Object] struct {
	mu      sync.Mutex // protects the map below
	objects map[types.UID]recentObject[T]
}

type recentObject[T metav1.Object] struct {
	object T
	at     time.Time
}

const (
	// informerDelay is longer than informers take to receive a write.
	informerDelay = time.Minute
	// minRecent is the number of objects that are kept without a check of their age.
	minRecent = 1000
)

func (r *recentObjects[T]) add(object T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects[object.GetUID()] = recentObject[T]{object, time.Now()}
	if len(r.objects) <= minRecent || len(r.objects)%minRecent != 0 {
		return
	}
	for uid, s := range r.objects {
		if time.Since(s.at) > informerDelay {
			delete(r.objects, uid)
		}
	}
}

func (r *recentObjects[T]) all() (list []T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.objects {
		list = append(list, s.object)
	}
	return list
}
