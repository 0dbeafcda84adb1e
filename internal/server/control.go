package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controllers"
	"freshet/internal/controllers/apikey"
	"freshet/internal/controllers/conditions"
	"freshet/internal/controllers/instance"
	"freshet/internal/controllers/rolebinding"
	"freshet/internal/controllers/serviceaccount"
	"freshet/internal/resources"
	"freshet/internal/telemetry"
	"freshet/internal/version"
)

// feeds connects the resources to identity and access.
type feeds struct {
	accounts serviceaccount.Feed
	keys     apikey.Feed
	issuer   *apikey.Issuer
	bindings rolebinding.Feed
}

func (s *server) feeds() feeds {
	return feeds{
		accounts: serviceaccount.Feed{
			Directory: s.people.directory, Sealer: s.people.sealer, Log: s.log,
			System: func(organization, name string) bool {
				return organization == s.cfg.Admin.Organization && name == s.cfg.Admin.ServiceAccount
			},
		},
		keys:     apikey.Feed{Directory: s.people.directory},
		issuer:   &apikey.Issuer{Issuer: s.people.issuer, Directory: s.people.directory, Rules: s.people.policy, Log: s.log},
		bindings: rolebinding.Feed{Policy: s.people.policy},
	}
}

// openResources builds the resource API and the controllers over it; both share
// the feeds.
func (s *server) openResources(context.Context) (err error) {
	f := s.feeds()
	s.instances = instance.NewFeed(s.people.directory)
	s.api, err = resources.New(resources.Config{
		Etcd:   s.endpoints(),
		Prefix: s.cfg.Etcd.Prefix,
		Kinds: resources.Kinds(resources.KindOptions{
			Plan:      s.plan,
			Issuing:   f.issuer.Issuing(),
			Rules:     f.bindings.Rules(),
			Accounts:  f.accounts.Observer(),
			Keys:      f.keys.Observer(),
			Bindings:  f.bindings.Observer(),
			Instances: s.instances.Observer(),
			Guard:     f.accounts.Guard(s.people.policy),
		}),
		Verifier:           s.people,
		Authorizer:         s.people.policy,
		Audit:              s.record,
		Transformers:       resources.AtRest(s.people.sealer),
		Ready:              s.checks(),
		Address:            s.cfg.HTTP,
		Version:            version.Get().Version,
		CompactionInterval: s.cfg.Etcd.CompactionInterval.Std(),
		MaxBody:            int64(s.cfg.Limits.ResourceBody),
		MaxReads:           s.cfg.Limits.ReadsInFlight,
		MaxWrites:          s.cfg.Limits.WritesInFlight,
	})
	if err != nil {
		return err
	}
	s.api.Start()
	s.loops, err = controllers.New(controllers.Config{
		Loopback: s.api.Loopback(), Plan: s.plan, Plane: s.plane,
		Accounts: f.accounts, Keys: f.keys, KeyIssuer: f.issuer, Bindings: f.bindings, Instances: s.instances,
		Log: s.log,
	})
	return err
}

const keyTending = time.Minute

// openControllers brings accounts, keys and bindings into force and starts the
// loops; from here on, closing must wait for them.
func (s *server) openControllers(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.background = cancel
	if err := s.loops.Load(background); err != nil {
		close(s.ended)
		return err
	}
	go s.people.keys.Run(background, keyTending, s.log)
	go telemetry.ReturnMemory(background)
	resealed := make(chan struct{})
	go func() {
		defer close(resealed)
		s.resealer().run(background)
	}()
	go func() {
		defer close(s.ended)
		defer func() { <-resealed }()
		if err := s.loops.Run(background); err != nil && background.Err() == nil {
			s.failed <- fmt.Errorf("controllers: %w", err)
		}
	}()
	return nil
}

// firstStart makes what a first start makes, and waits until every cluster that
// is stored answers: readiness means that nothing has to be waited for.
func (s *server) firstStart(ctx context.Context) error {
	client := s.loops.Client()
	if err := seed(ctx, client, s.plan); err != nil {
		return err
	}
	if err := bootstrap(ctx, s.cfg, client, s.plan, s.people.issuer); err != nil {
		return err
	}
	return s.awaitClusters(ctx)
}

const clustersTimeout = 2 * time.Minute

// awaitClusters waits for every cluster to be open, or to have said why not.
func (s *server) awaitClusters(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clustersTimeout, errors.New("a cluster did not open in time"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		settled, err := s.clustersSettled(ctx)
		if err != nil {
			return fmt.Errorf("waiting for the clusters: %w", err)
		}
		if settled {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the clusters: %w", context.Cause(ctx))
		}
	}
}

// clustersSettled asks the store and not the controllers' caches, which may not
// have heard yet of what the first start made.
func (s *server) clustersSettled(ctx context.Context) (bool, error) {
	api := s.loops.Client().CloudV1alpha1()
	clusters, err := api.MessagingClusters("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		ready, _ := conditions.Find(cluster.Status.Conditions, v1alpha1.ConditionReady)
		if cluster.DeletionTimestamp != nil || s.plane.Has(string(cluster.UID)) || ready.Reason == "ProvisioningFailed" {
			continue
		}
		_, err := api.MessagingInstances(cluster.Namespace).Get(ctx, cluster.Spec.InstanceName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // it waits for its instance, which may never come
		}
		return false, err
	}
	return true, nil
}
