package kinds

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/reconcile/garbage"
)

// Controllers are the reconcilers of all kinds, and the garbage collector.
type Controllers struct {
	set       *Set
	client    versioned.Interface
	informers externalversions.SharedInformerFactory
	loops     []func(context.Context) error
}

// workers is how many objects a reconciler looks at at once. They mostly wait
// for the store, which commits together what comes together.
const workers = 16

// Controllers makes the reconcilers over the service's own client; nothing runs
// before Load and Run. Their steps are told to the recorder; nil for those that only
// Follow.
func (s *Set) Controllers(loopback *rest.Config, recorder reconcile.Recorder) (*Controllers, error) {
	client, err := versioned.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("making the controllers' client: %w", err)
	}
	c := &Controllers{set: s, client: client, informers: externalversions.NewSharedInformerFactory(client, 0)}
	collector, err := garbage.New(loopback, s.collected(), s.opts.Log.With(slog.String("controller", "garbage")))
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
	return c, c.narrate(recorder)
}

// narrate has the steps of all kinds told.
func (c *Controllers) narrate(recorder reconcile.Recorder) error {
	cloud := c.informers.Cloud().V1alpha1()
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"ServiceAccount":        cloud.ServiceAccounts().Informer(),
		"ServiceAccountBinding": cloud.ServiceAccountBindings().Informer(),
		"User":                  cloud.Users().Informer(),
		"MessagingInstance":     cloud.MessagingInstances().Informer(),
		"MessagingCluster":      cloud.MessagingClusters().Informer(),
		"APIKey":                cloud.APIKeys().Informer(),
		"Role":                  cloud.Roles().Informer(),
		"RoleBinding":           cloud.RoleBindings().Informer(),
	} {
		if err := reconcile.Narrate(informer, kind, recorder); err != nil {
			return fmt.Errorf("telling the steps of %s: %w", kind, err)
		}
	}
	return nil
}

// collected are the kinds as garbage collection sees them: all of them.
func (s *Set) collected() []garbage.Kind {
	list := make([]garbage.Kind, 0, len(s.definitions))
	for _, definition := range s.definitions {
		info := definition.Info()
		list = append(list, garbage.Kind{
			Resource: v1alpha1.SchemeGroupVersion.WithResource(info.Plural), Kind: info.Kind,
			Cluster: info.ClusterScoped,
			Owner:   info.Owner, OwnerField: info.OwnerField,
		})
	}
	return list
}

// Client is the controllers' own client of the API.
func (c *Controllers) Client() versioned.Interface { return c.client }

// Load fills the caches, and from them identity and access: when it returns,
// every account, user, key, role and binding that is stored is in force.
func (c *Controllers) Load(ctx context.Context) error {
	c.informers.Start(ctx.Done())
	for kind, synced := range c.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("reading the stored %s: %w", kind, context.Cause(ctx))
		}
	}
	cloud := c.informers.Cloud().V1alpha1()
	if err := putAll(cloud.ServiceAccounts().Lister().List, c.set.accounts.Put); err != nil {
		return err
	}
	if err := putAll(cloud.Users().Lister().List, c.set.users.Put); err != nil {
		return err
	}
	if err := putAll(cloud.APIKeys().Lister().List, c.set.keys.Put); err != nil {
		return err
	}
	if err := putAll(cloud.Roles().Lister().List, c.set.roles.Put); err != nil {
		return err
	}
	if err := putAll(cloud.RoleBindings().Lister().List, c.set.bindings.Put); err != nil {
		return err
	}
	// Last, for an instance on its way out ends its keys.
	return putAll(cloud.MessagingInstances().Lister().List, c.set.instances.Put)
}

func putAll[T any](list func(labels.Selector) ([]T, error), put func(T)) error {
	objects, err := list(labels.Everything())
	for _, object := range objects {
		put(object)
	}
	return err
}

// Publish writes what comes with the service: roles, pools and their members.
func (c *Controllers) Publish(ctx context.Context) error {
	for _, kind := range c.set.published {
		if err := kind.Publish(ctx, c.client); err != nil {
			return err
		}
	}
	return nil
}

// Follow keeps identity and access as they are stored until the context ends, and
// works on nothing.
func (c *Controllers) Follow(ctx context.Context) {
	<-ctx.Done()
	c.informers.Shutdown()
}

// Run works until the context ends.
func (c *Controllers) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range c.loops {
		group.Go(func() error { return run(ctx) })
	}
	err := group.Wait()
	c.informers.Shutdown()
	return err
}
