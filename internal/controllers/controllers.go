// Package controllers runs every reconcile loop of the service over one set of
// informers. What each loop does stands in its own folder; this is where they
// are put together, started and ended.
package controllers

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controllers/apikey"
	"freshet/internal/controllers/binding"
	"freshet/internal/controllers/cluster"
	"freshet/internal/controllers/garbage"
	"freshet/internal/controllers/instance"
	"freshet/internal/controllers/rolebinding"
	"freshet/internal/controllers/serviceaccount"
	"freshet/internal/controllers/user"
	"freshet/internal/resources/placement"
)

// Config is what the loops work with.
type Config struct {
	Loopback  *rest.Config
	Plan      *placement.Plan
	Plane     cluster.Plane
	Accounts  serviceaccount.Feed
	Keys      apikey.Feed
	KeyIssuer *apikey.Issuer
	Instances *instance.Feed
	Bindings  rolebinding.Feed
	Log       *slog.Logger
}

// Set is every loop.
type Set struct {
	cfg       Config
	client    versioned.Interface
	informers externalversions.SharedInformerFactory
	garbage   *garbage.Controller
	loops     []func(context.Context) error
}

// workers is how many objects a loop looks at at once. They mostly wait for the
// store, which commits together what comes together.
const workers = 16

// New makes the loops; nothing runs before Start.
func New(cfg Config) (*Set, error) {
	client, err := versioned.NewForConfig(cfg.Loopback)
	if err != nil {
		return nil, fmt.Errorf("making the controllers' client: %w", err)
	}
	s := &Set{cfg: cfg, client: client, informers: externalversions.NewSharedInformerFactory(client, 0)}
	if s.garbage, err = garbage.New(cfg.Loopback, garbageKinds(), cfg.Log.With(slog.String("controller", "garbage"))); err != nil {
		return nil, err
	}
	s.loops = append(s.loops, s.garbage.Run)
	return s, s.addKinds()
}

// addKinds makes the loop of each kind.
func (s *Set) addKinds() error {
	issuer := s.cfg.KeyIssuer.Issuer
	accounts, err := serviceaccount.New(s.client, s.informers, issuer, s.cfg.Accounts, s.cfg.Log)
	if err != nil {
		return err
	}
	keys, err := apikey.New(s.client, s.informers, s.cfg.KeyIssuer, s.cfg.Keys, s.cfg.Log)
	if err != nil {
		return err
	}
	instances, err := instance.New(s.client, s.informers, s.cfg.Plan, issuer.URL(), s.cfg.Instances, s.cfg.Log)
	if err != nil {
		return err
	}
	clusters, err := cluster.New(s.client, s.informers, s.cfg.Plan, s.cfg.Plane, s.cfg.Log)
	if err != nil {
		return err
	}
	bindings, err := binding.New(s.client, s.informers, s.cfg.Plan, s.cfg.Log)
	if err != nil {
		return err
	}
	roles, err := rolebinding.New(s.client, s.informers, s.cfg.Bindings, s.cfg.Log)
	if err != nil {
		return err
	}
	users, err := user.New(s.client, s.informers, s.cfg.Log)
	if err != nil {
		return err
	}
	for _, run := range []func(context.Context, int) error{
		accounts.Run, keys.Run, instances.Run, clusters.Run, bindings.Run, roles.Run, users.Run,
	} {
		s.loops = append(s.loops, func(ctx context.Context) error { return run(ctx, workers) })
	}
	return nil
}

func garbageKinds() []garbage.Kind {
	var kinds []garbage.Kind
	for resource, kind := range map[string]string{
		"serviceaccounts": "ServiceAccount", "serviceaccountbindings": "ServiceAccountBinding", "users": "User",
		"messaginginstances": "MessagingInstance", "messagingclusters": "MessagingCluster",
		"apikeys": "APIKey", "rolebindings": "RoleBinding", "pools": "Pool", "poolmembers": "PoolMember",
	} {
		kinds = append(kinds, garbage.Kind{Resource: v1alpha1.SchemeGroupVersion.WithResource(resource), Kind: kind})
	}
	return append(kinds, garbage.Kind{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("clusterroles"), Kind: "ClusterRole", Cluster: true,
	})
}

// Client is the loops' own client of the API.
func (s *Set) Client() versioned.Interface { return s.client }

// Load fills the caches, and from them identity and access: when it returns,
// every account, key and binding that is stored is in force.
func (s *Set) Load(ctx context.Context) error {
	s.informers.Start(ctx.Done())
	for kind, synced := range s.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("reading the stored %s: %w", kind, context.Cause(ctx))
		}
	}
	cloud := s.informers.Cloud().V1alpha1()
	accounts, err := cloud.ServiceAccounts().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, account := range accounts {
		s.cfg.Accounts.Put(account)
	}
	keys, err := cloud.APIKeys().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, key := range keys {
		s.cfg.Keys.Put(key)
	}
	bindings, err := cloud.RoleBindings().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, b := range bindings {
		s.cfg.Bindings.Put(b)
	}
	// Last, for an instance on its way out ends its keys.
	instances, err := cloud.MessagingInstances().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, i := range instances {
		s.cfg.Instances.Put(i)
	}
	return nil
}

// Run works until the context ends.
func (s *Set) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range s.loops {
		group.Go(func() error { return run(ctx) })
	}
	err := group.Wait()
	s.informers.Shutdown()
	return err
}
