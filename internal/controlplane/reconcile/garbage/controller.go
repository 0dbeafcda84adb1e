package garbage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"freshet/internal/controlplane/reconcile"
)

// Kind is one kind that the collector handles.
type Kind struct {
	Resource      schema.GroupVersionResource
	Kind          string
	ClusterScoped bool
	// Owner is the kind of the owner that the service sets for every object of this kind, and
	// OwnerField the field that names it. An object belongs to that owner from its creation, even
	// before the reference is written.
	Owner      string
	OwnerField string
}

// Controller is the garbage collector.
type Controller struct {
	client    metadata.Interface
	factory   metadatainformer.SharedInformerFactory
	informers map[schema.GroupVersionResource]cache.SharedIndexInformer
	kinds     map[schema.GroupKind]Kind
	queue     workqueue.TypedRateLimitingInterface[item]
	log       *slog.Logger
}

const workers = 4

// New creates a collector for the kinds.
func New(config *rest.Config, kinds []Kind, log *slog.Logger) (*Controller, error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, fmt.Errorf("creating a metadata client: %w", err)
	}
	c := &Controller{
		client:    client,
		factory:   metadatainformer.NewSharedInformerFactory(client, 0),
		informers: map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		kinds:     map[schema.GroupKind]Kind{},
		queue:     reconcile.NewQueue[item]("garbage"),
		log:       log,
	}
	for _, kind := range kinds {
		if err := c.watch(kind); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Controller) watch(kind Kind) error {
	informer := c.factory.ForResource(kind.Resource).Informer()
	if err := informer.AddIndexers(cache.Indexers{byOwner: indexByOwner}); err != nil {
		return fmt.Errorf("indexing %s by owner: %w", kind.Resource.Resource, err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.changed(kind, obj) },
		UpdateFunc: func(old, obj any) { c.updated(kind, old, obj) },
		DeleteFunc: func(obj any) { c.deleted(kind, obj) },
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind.Resource.Resource, err)
	}
	c.informers[kind.Resource] = informer
	c.kinds[schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Kind}] = kind
	return nil
}

func (c *Controller) changed(kind Kind, obj any) {
	n := node{obj.(*metav1.PartialObjectMetadata), kind.Resource}
	if len(n.OwnerReferences) > 0 || n.DeletionTimestamp != nil {
		c.queue.Add(n.item())
	}
	// A dependent that is created late may belong to an owner in foreground deletion, which must
	// then wait for it too.
	c.addOwners(n)
}

// updated also queues the previous owners of an object, because one of them may have waited for it.
func (c *Controller) updated(kind Kind, old, obj any) {
	c.changed(kind, obj)
	c.addOwners(node{old.(*metav1.PartialObjectMetadata), kind.Resource})
}

func (c *Controller) deleted(kind Kind, obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	metaObj, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	n := node{metaObj, kind.Resource}
	for _, dependent := range c.dependents(n) {
		c.queue.Add(dependent.item())
	}
	c.addOwners(n)
}

// addOwners queues the owners that wait for this object's deletion.
func (c *Controller) addOwners(n node) {
	for _, ref := range n.OwnerReferences {
		if owner, _ := c.owner(n, ref); owner.PartialObjectMetadata != nil && owner.DeletionTimestamp != nil {
			c.queue.Add(owner.item())
		}
	}
}

// Run collects until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	c.factory.Start(ctx.Done())
	defer c.factory.Shutdown()
	for resource, synced := range c.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("filling the cache of %s: %w", resource.Resource, context.Cause(ctx))
		}
	}
	return reconcile.Run(ctx, c.queue, workers, c.log, c.collect)
}

// collect processes one object.
func (c *Controller) collect(ctx context.Context, it item) error {
	n, ok := c.find(it)
	if !ok || n.UID != it.uid {
		return nil
	}
	if n.DeletionTimestamp == nil {
		return c.collectDependent(ctx, n)
	}
	if grace := n.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
		if wait := time.Until(reconcile.GraceEnd(n)); wait > 0 {
			c.queue.AddAfter(it, wait)
			return nil
		}
		return c.deleteNow(ctx, n)
	}
	return errors.Join(c.orphanDependents(ctx, n), c.awaitDependents(ctx, n))
}
