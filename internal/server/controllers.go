package server

import (
	"context"
	"sync"
	"time"

	"freshet/internal/base/version"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/bootstrap"
	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/ops/adminfiles"
	"freshet/internal/ops/telemetry"
	"freshet/internal/surfaces/signinapi"
)

// openResources creates the kinds, the resource API and its controllers.
func (s *server) openResources(context.Context) (err error) {
	s.identity.policy.SetClusterGrants(s.plane.ClusterGrants(s.readiness.check))
	s.kinds = kinds.New(kinds.Options{
		Plan: s.plan, Plane: s.clusters, Quotas: s.quotas,
		Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
		Policy: s.identity.policy, SignIns: s.signIn.People,
		Addresses: s.identity.addresses, TokenLifetime: s.cfg.Tokens.Lifetime.Std(),
		Inviter: s.signIn.Links, Links: signinapi.Links{Base: s.cfg.PublicURL()},
		SystemOrganization: s.cfg.Admin.Organization, SystemAccount: s.cfg.Admin.ServiceAccount,
		Replicas: s.topology.replicas(), Log: s.log,
	})
	s.topology.startLoading()
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
		Degraded:           s.topology.degraded,
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
	s.controllers = running{cancel, make(chan struct{})}
	err := s.loops.Load(background)
	if err == nil {
		err = s.signIn.Load(background)
	}
	if err == nil {
		err = s.topology.finishLoading(background)
	}
	if err != nil {
		close(s.controllers.ended)
		return err
	}
	go s.identity.keys.Run(background, keyRotationCheck, s.log)
	go s.withdrawer().Run(background)
	go telemetry.ReturnMemory(background)
	var others sync.WaitGroup
	others.Go(func() { s.resealer().Run(background) })
	others.Go(func() { s.signIn.Run(background) })
	go func() {
		defer close(s.controllers.ended)
		defer others.Wait()
		s.topology.runControllers(background)
	}()
	return nil
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
