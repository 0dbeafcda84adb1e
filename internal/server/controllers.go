package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/base/version"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/ops/telemetry"
	"freshet/internal/surfaces/signinapi"
)

// openResources creates the kinds, the resource API and its controllers.
func (s *server) openResources(context.Context) (err error) {
	s.identity.policy.SetClusterGrants(clusterGrants{s})
	s.kinds = kinds.New(kinds.Options{
		Plan: s.plan, Plane: s.clusters, Quotas: s.quotas,
		Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
		Policy: s.identity.policy, SignIns: s.signIn,
		Addresses: s.identity.addresses, TokenLifetime: s.cfg.Tokens.Lifetime.Std(),
		Inviter:            s.signIn,
		InviteURL:          func(token string) string { return signinapi.InviteURL(s.cfg.PublicURL(), token) },
		SystemOrganization: s.cfg.Admin.Organization, SystemAccount: s.cfg.Admin.ServiceAccount,
		OnStored: s.topology.onStored(), Log: s.log,
	})
	s.topology.startLoading()
	s.api, err = apiserver.New(apiserver.Config{
		Etcd:          s.endpoints(),
		Prefix:        s.cfg.Etcd.Prefix,
		Kinds:         s.kinds.Definitions(),
		Authenticator: s.identity,
		Audiences:     s.identity.audiences,
		Authorizer:    s.identity.policy,
		Auditor:       s,
		Quotas:        s.quotas,
		Transformers:  apiserver.AtRest(s.identity.sealer, s.kinds.Definitions()),
		Store:         s.store,
		Budget: budget.Limits{
			Objects: int64(s.cfg.Quotas.Resources.Objects),
			Bytes:   int64(s.cfg.Quotas.Resources.Bytes),
		},
		Ready:              s.checks(),
		Address:            s.cfg.PublicAddress(),
		Version:            version.Get().Version,
		CompactionInterval: s.cfg.Etcd.CompactionInterval.Std(),
		MaxBody:            int64(s.cfg.Limits.ResourceBody),
		Bodies:             s.limiter,
		MaxReads:           s.cfg.Limits.ReadsInFlight,
		MaxWrites:          s.cfg.Limits.WritesInFlight,
		Log:                s.log,

		RefuseNewOrganizations: !s.cfg.Organizations.AutoCreate,
	})
	if err != nil {
		return err
	}
	s.api.Start()
	s.loops, err = s.kinds.Controllers(s.api.Loopback(), s.topology.recorder())
	return err
}

const keyRotationCheck = time.Minute

// openControllers loads accounts, users, keys and bindings, and starts the controllers. From
// then on, closing must wait for them.
func (s *server) openControllers(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.background = cancel
	err := s.loops.Load(background)
	if err == nil {
		err = s.signIn.Load(background)
	}
	if err == nil {
		err = s.topology.finishLoading(background)
	}
	if err != nil {
		close(s.controllersEnded)
		return err
	}
	go s.identity.keys.Run(background, keyRotationCheck, s.log)
	go s.withdrawer().Run(background)
	go telemetry.ReturnMemory(background)
	var others sync.WaitGroup
	others.Go(func() { s.resealer().run(background) })
	others.Go(func() { s.signIn.Run(background) })
	go func() {
		defer close(s.controllersEnded)
		defer others.Wait()
		s.topology.runControllers(background)
	}()
	return nil
}

const clustersTimeout = 2 * time.Minute

// awaitClusters waits until every cluster is open or has failed.
func (s *server) awaitClusters(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clustersTimeout, errors.New("opening a cluster timed out"))
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

// clustersSettled reports whether every stored cluster is open or has failed. It reads the
// store and not the caches of the controllers, which may not contain the objects of the first
// start yet.
func (s *server) clustersSettled(ctx context.Context) (bool, error) {
	api := s.loops.Client().CloudV1alpha1()
	clusters, err := api.MessagingClusters("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		_, _, planned := s.plan.Member(cluster.Spec.PoolMemberRef)
		if cluster.DeletionTimestamp != nil || s.plane.Has(string(cluster.UID)) || !planned {
			continue
		}
		_, err := api.MessagingInstances(cluster.Namespace).Get(ctx, cluster.Spec.InstanceName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // it waits for its instance, which may never be created
		}
		return false, err
	}
	return true, nil
}
