package kinds

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/v1alpha1"
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

// observedKind contains the functions of a kind with an Observer, for callers that do not have its
// type.
type observedKind struct {
	apply   func(c Change) error
	catchUp func(ctx context.Context, c *Controllers) error
}

// Apply applies a change that another member has stored. It ignores late and repeated changes.
func (s *Set) Apply(c Change) error {
	of, ok := s.observed[c.Kind]
	if !ok {
		return errs.Newf(errs.Invalid, "kind %q has no observer", c.Kind)
	}
	return of.apply(c)
}

// CatchUp applies the stored state of all objects, independently of changes that may still arrive.
// It is for a member that was disconnected from the others.
func (c *Controllers) CatchUp(ctx context.Context) error {
	// Instances are last, because one that is being deleted ends its keys.
	order := slices.Clone(c.set.order)
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "MessagingInstance"), strings.Count(b, "MessagingInstance"))
	})
	for _, kind := range order {
		if err := c.set.observed[kind].catchUp(ctx, c); err != nil {
			return fmt.Errorf("reading every stored %s: %w", kind, err)
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
	name, recent := kind.Info().Kind, &recentObjects[T]{objects: map[types.UID]recentObject[T]{}}
	s.order = append(s.order, name)
	s.observed[name] = observedKind{
		apply: func(c Change) error {
			object := kind.New()
			if err := json.Unmarshal(c.Object, object); err != nil {
				return errs.Newf(errs.Invalid, "decoding a %s of another member: %w", name, err)
			}
			if c.Gone {
				observer.Remove(object)
				return nil
			}
			recent.add(object)
			observer.Put(object)
			return nil
		},
		catchUp: func(ctx context.Context, c *Controllers) error {
			return catchUp(ctx, c, kind, observer, recent)
		},
	}
	if s.opts.OnStored == nil {
		return
	}
	resource.OnStored(func(object T, gone bool) {
		if !gone {
			recent.add(object)
		}
		text, err := json.Marshal(object)
		if err != nil {
			panic("kinds: encoding a stored object: " + err.Error()) // the store has encoded it before
		}
		s.opts.OnStored(Change{Kind: name, Gone: gone, Object: text})
	})
}

// catchUp passes all stored objects of a kind to the observer, and removes the objects that the
// observer has but that no longer exist.
func catchUp[T store.Object](ctx context.Context, c *Controllers, kind store.Kind[T], observer store.Observer[T],
	recent *recentObjects[T],
) error {
	list := kind.NewList()
	plural := kind.Info().Plural
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
		observer.Put(object)
	}
	existing := recent.all()
	informer, err := c.informers.ForResource(v1alpha1.SchemeGroupVersion.WithResource(plural))
	if err != nil {
		return err
	}
	for _, item := range informer.Informer().GetStore().List() {
		if object, ok := item.(T); ok {
			existing = append(existing, object)
		}
	}
	for _, object := range existing {
		if !stored[object.GetUID()] && reconcile.Revision(object) <= revision {
			observer.Remove(object)
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
