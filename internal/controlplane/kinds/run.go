package kinds

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/garbage"
)

// Controllers contains the reconcilers of all kinds, and the garbage collector.
type Controllers struct {
	set       *Set
	client    versioned.Interface
	informers externalversions.SharedInformerFactory
	loops     []func(context.Context) error
}

// workers is the number of objects that a reconciler processes concurrently. Workers mostly wait
// for the store, which commits concurrent writes together.
const workers = 16

// Controllers creates the reconcilers with the service's own client; nothing runs before Load and
// Run. recorder receives Events about their steps; nil for callers that only use Follow.
func (s *Set) Controllers(loopback *rest.Config, recorder reconcile.Recorder) (*Controllers, error) {
	client, err := versioned.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("creating the client of the controllers: %w", err)
	}
	c := &Controllers{set: s, client: client, informers: externalversions.NewSharedInformerFactory(client, 0)}
	collector, err := garbage.New(loopback, s.garbageKinds(), s.opts.Log.With(slog.String("controller", "garbage")))
	if err != nil {
		return nil, err
	}
	c.loops = append(c.loops, collector.Run)
	env := reconcile.Env{Client: client, Informers: c.informers, Log: s.opts.Log}
	for _, kind := range s.reconciled {
		runner, err := kind.Controller(env)
		if err != nil {
			return nil, err
		}
		c.loops = append(c.loops, func(ctx context.Context) error { return runner.Run(ctx, workers) })
	}
	if recorder == nil {
		return c, nil
	}
	return c, c.recordEvents(recorder)
}

// recordEvents records Events about the steps of all kinds that users write.
func (c *Controllers) recordEvents(recorder reconcile.Recorder) error {
	for _, definition := range c.set.definitions {
		info := definition.Info()
		if info.ReadOnly {
			continue
		}
		informer, err := c.informer(info.Plural)
		if err != nil {
			return err
		}
		if err := reconcile.RecordEvents(informer, info.Kind, definition, recorder); err != nil {
			return fmt.Errorf("recording events of %s: %w", info.Kind, err)
		}
	}
	return nil
}

// informer returns the informer of a kind, by its plural.
func (c *Controllers) informer(plural string) (cache.SharedIndexInformer, error) {
	generic, err := c.informers.ForResource(v1alpha1.SchemeGroupVersion.WithResource(plural))
	if err != nil {
		return nil, err
	}
	return generic.Informer(), nil
}

// garbageKinds returns all kinds in the form that garbage collection uses.
func (s *Set) garbageKinds() []garbage.Kind {
	list := make([]garbage.Kind, 0, len(s.definitions))
	for _, definition := range s.definitions {
		info := definition.Info()
		list = append(list, garbage.Kind{
			Resource: v1alpha1.SchemeGroupVersion.WithResource(info.Plural), Kind: info.Kind,
			ClusterScoped: info.ClusterScoped,
			Owner:         info.Owner, OwnerField: info.OwnerField,
		})
	}
	return list
}

// Client returns the controllers' client of the API.
func (c *Controllers) Client() versioned.Interface { return c.client }

// Load fills the caches, and from them identity and access: when it returns, every stored account,
// user, key, role and binding is in effect.
func (c *Controllers) Load(ctx context.Context) error {
	c.informers.Start(ctx.Done())
	for kind, synced := range c.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("reading the stored %s: %w", kind, context.Cause(ctx))
		}
	}
	for _, kind := range c.set.observed {
		if err := kind.load(c); err != nil {
			return fmt.Errorf("loading every %s: %w", kind.name(), err)
		}
	}
	return nil
}

// Publish writes the objects that the service creates: predefined roles, pools and pool members.
func (c *Controllers) Publish(ctx context.Context) error {
	for _, kind := range c.set.published {
		if err := kind.Publish(ctx, c.client); err != nil {
			return err
		}
	}
	return nil
}

// Follow keeps identity and access up to date with the stored objects until the context ends. It
// runs no reconcilers.
func (c *Controllers) Follow(ctx context.Context) {
	<-ctx.Done()
	c.informers.Shutdown()
}

// Run runs the reconcilers until the context ends.
func (c *Controllers) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, run := range c.loops {
		running.Go(func() error { return run(ctx) })
	}
	err := running.Wait()
	c.informers.Shutdown()
	return err
}
