package server

import (
	"context"
	"fmt"
	"net"

	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/bootstrap"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/dataplane"
	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/ops/datadir"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/kafkaapi"
)

// single is the topology of a server that runs alone.
type single struct{ s *server }

func (single) openCredentials(context.Context) error { return nil }
func (single) openPort(context.Context) error        { return nil }
func (single) openLog(context.Context) error         { return nil }
func (single) join(context.Context) error            { return nil }

func (t single) startEtcd(ctx context.Context, opts etcd.Options) (*etcd.Member, error) {
	if err := datadir.CheckResourceStore(t.s.cfg.DataDir); err != nil {
		return nil, fmt.Errorf("%w; restore the data directory from a backup, or start with a new one", err)
	}
	return etcd.Start(ctx, t.s.cfg.Path("etcd"), opts)
}

// replicas returns nil: no other server has to apply a change.
func (single) replicas() kinds.Replicas { return nil }

func (t single) recorder() reconcile.Recorder { return t.s.api.Recorder() }

func (single) startLoading() {}

func (single) finishLoading(context.Context) error { return nil }

func (t single) runControllers(ctx context.Context) {
	if err := t.s.servers.Lead(ctx, t.s.loops.Run); err != nil && ctx.Err() == nil {
		t.s.failed <- fmt.Errorf("running the controllers: %w", err)
	}
}

func (t single) firstStart(ctx context.Context) error {
	s := t.s
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

func (t single) runBackups(ctx context.Context) { t.s.backups.Run(ctx) }

func (t single) openPlane(opts dataplane.Options) (*dataplane.Plane, clusterPlane, error) {
	plane, err := dataplane.Open(opts)
	if err != nil {
		return nil, nil, err
	}
	t.s.closers = append(t.s.closers, plane.Close)
	return plane, datagroup.SinglePlane{Plane: plane}, nil
}

func (single) routes(*dataplane.Cluster) brokerhttp.Members { return brokerhttp.SingleServer{} }

func (single) nodes(*dataplane.Cluster) kafkaapi.Members { return kafkaapi.SingleServer{} }

// refuseEarly does nothing: clients wait in the backlog until the server is ready.
func (single) refuseEarly(*net.TCPListener) (end func()) { return func() {} }

func (single) checks() []apiserver.Check { return nil }

func (single) degraded() []string { return nil }
