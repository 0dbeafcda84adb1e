package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"freshet/internal/base/version"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/bootstrap"
	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/invite"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/controlplane/rotation"
	"freshet/internal/controlplane/tokens"
	"freshet/internal/identity"
	"freshet/internal/ops/adminfiles"
	"freshet/internal/ops/telemetry"
	"freshet/internal/surfaces/signinapi"
)

// openResources creates the kinds, the resource API and its controllers.
func (s *server) openResources(context.Context) (err error) {
	s.identity.policy.SetClusterGrants(s.plane.ClusterGrants(s.readiness.check))
	s.kinds = kinds.New(kinds.Options{
		Plan: s.plan, Plane: s.clusterPlane(), Quotas: s.quotas,
		Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
		Policy: s.identity.policy, SignIns: s.signIn,
		SystemOrganization: s.cfg.Admin.Organization, SystemAccount: s.cfg.Admin.ServiceAccount,
		OnStored: s.notifyStored(), Log: s.log,
	})
	s.startReceivingChanges()
	s.api, err = apiserver.New(apiserver.Config{
		Etcd:          s.endpoints(),
		Prefix:        s.cfg.Etcd.Prefix,
		Kinds:         s.kinds.Definitions(),
		Authenticator: s.identity.authenticator,
		Audiences:     s.identity.audiences,
		Authorizer:    s.identity.policy,
		Auditor:       s.audit,
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
		Tokens: &tokens.Options{
			Issuer: s.identity.issuer, Directory: s.identity.directory, Authorizer: s.identity.policy,
			Audiences: identity.Audiences{
				Addresses: s.identity.addresses, Instances: s.kinds.Instances(),
				Lifetime: s.cfg.Tokens.Lifetime.Std(),
			},
		},
		Rotation: &rotation.Options{
			Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
			Authorizer: s.identity.policy,
		},

		Invite: &invite.Options{
			Authorizer: s.identity.policy, Inviter: s.signIn,
			URL: func(token string) string { return signinapi.InviteURL(s.cfg.PublicURL(), token) },
		},

		RefuseNewOrganizations: !s.cfg.Organizations.AutoCreate,
	})
	if err != nil {
		return err
	}
	s.api.Start()
	recorder := reconcile.Recorder(s.api.Recorder())
	if s.ensemble != nil {
		recorder = nil // the elected member has controllers of its own, see control
	}
	s.loops, err = s.kinds.Controllers(s.api.Loopback(), recorder)
	return err
}

const keyRotationCheck = time.Minute

// openControllers loads accounts, users, keys and bindings, and starts the controllers. From
// then on, closing must wait for them.
func (s *server) openControllers(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.controllers = running{cancel, make(chan struct{})}
	err := s.loops.Load(background)
	if err == nil {
		err = s.signIn.Load(background)
	}
	if err == nil {
		err = s.finishLoading(background)
	}
	if err != nil {
		close(s.controllers.ended)
		return err
	}
	go s.identity.keys.Run(background, keyRotationCheck, s.log)
	go s.withdrawer().run(background)
	go telemetry.ReturnMemory(background)
	var others sync.WaitGroup
	others.Go(func() { s.resealer().Run(background) })
	others.Go(func() { s.signIn.Run(background) })
	if s.ensemble != nil {
		s.lead(background)
		go func() {
			defer close(s.controllers.ended)
			defer others.Wait()
			s.loops.Follow(background)
		}()
		return nil
	}
	go func() {
		defer close(s.controllers.ended)
		defer others.Wait()
		if err := s.loops.Run(background); err != nil && background.Err() == nil {
			s.failed <- fmt.Errorf("running the controllers: %w", err)
		}
	}()
	return nil
}

// firstStart does the first start if needed, and waits until every stored cluster is open.
// A server is ready only when clients need not wait for a cluster.
func (s *server) firstStart(ctx context.Context) error {
	if s.ensemble != nil {
		return s.awaitFirstStart(ctx)
	}
	if err := s.loops.Publish(ctx); err != nil {
		return err
	}
	first, err := bootstrap.Run(ctx, s.firstStartOptions())
	if err != nil {
		return err
	}
	if first {
		if s.link, _, err = s.adminLink(ctx, firstLinkLifetime); err != nil {
			return err
		}
	}
	if err := s.awaitClusters(ctx); err != nil {
		return err
	}
	if s.plane.Health() != nil {
		return nil //nolint:nilerr // /readyz and the banner report it
	}
	return s.restored.Finish()
}

// firstStartOptions returns the objects and files that the first start creates.
func (s *server) firstStartOptions() bootstrap.Options {
	files := adminfiles.Files{Dir: s.cfg.DataDir, Server: s.cfg.SecureURL(), Namespace: s.cfg.Admin.Organization}
	if s.cfg.TLS.CertFile == "" {
		files.CAFile = s.cfg.Path("tls", "ca.crt")
	}
	return bootstrap.Options{
		Client: s.loops.Client(), Plan: s.plan, Issuer: s.identity.issuer,
		Organization: s.cfg.Admin.Organization, Account: s.cfg.Admin.ServiceAccount,
		DefaultCluster: s.cfg.DefaultCluster, Files: files,
	}
}

// awaitClusters waits until every cluster is open or has failed.
func (s *server) awaitClusters(ctx context.Context) error {
	return bootstrap.AwaitClusters(ctx, s.loops.Client(), s.plan, s.plane.Has)
}
