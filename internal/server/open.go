package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"freshet/internal/broker/history"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ops/audit"
	"freshet/internal/ops/backup"
	"freshet/internal/ops/datadir"
	"freshet/internal/ops/listen"
	"freshet/internal/ops/quota"
	"freshet/internal/ops/telemetry"
	"freshet/internal/server/migrate"
	"freshet/internal/server/restore"
	"freshet/internal/server/staging"
)

// open opens the phases in order. If one fails, Run closes those that are open.
func (s *server) open(ctx context.Context) error {
	for _, phase := range []struct {
		name string
		open func(context.Context) error
	}{
		{"data directory", s.openDirectory},
		{"ensemble", s.topology.openCredentials},
		{"ports", s.openPorts},
		{"members' port", s.topology.openPort},
		{"Kafka ports", s.openKafkaPorts},
		{"responses during the start", s.serveStarting},
		{"etcd", s.openEtcd},
		{"log", s.topology.openLog},
		{"members", s.topology.join},
		{"identity", s.openIdentity},
		{"audit log", s.openAudit},
		{"data plane", s.openPlane},
		{"resource API", s.openResources},
		{"surfaces", s.openSurfaces},
		{"controllers", s.openControllers},
		{"first start", s.topology.firstStart},
		{"Kafka protocol", s.openKafka},
		{"control socket", s.openControl},
	} {
		began := time.Now()
		s.systemd.Status("starting: " + phase.name)
		if err := phase.open(ctx); err != nil {
			return err
		}
		s.log.Debug("phase done", slog.String("phase", phase.name), slog.Duration("took", time.Since(began)))
	}
	s.metrics.Registry().MustRegister(s.collectors()...)
	s.front.Serve(s.routes)
	s.reserve.StoresOpen()
	s.readiness.set()
	s.servers.SetReady(ctx, true)
	return nil
}

func (s *server) openDirectory(context.Context) error {
	lock, err := datadir.Acquire(s.cfg.DataDir)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, lock.Release, s.undoStart, s.reserve.Close)
	if err := s.start.Locked(); err != nil {
		return fmt.Errorf("reading the data directory: %w", err)
	}
	if err := s.reserve.Maintain(); err != nil {
		return err
	}
	if err := restore.CheckFinished(s.cfg.DataDir); err != nil {
		return err
	}
	if err := migrate.CheckFinished(s.cfg.DataDir); err != nil {
		return err
	}
	if !s.cfg.Members.Enabled() {
		if err := bundle.CheckNotMember(s.cfg.BundleDir(), s.cfg.DataDir); err != nil {
			return err
		}
	}
	return datadir.OpenFormats(s.cfg.DataDir, s.log)
}

// undoStart removes what a start created that failed before it stored anything, for example because a port
// is in use.
func (s *server) undoStart() error {
	if s.stored {
		return nil
	}
	return s.start.Undo()
}

func (s *server) openPorts(ctx context.Context) (err error) {
	s.ports.budget = listen.DivideOpenFiles(s.cfg.Limits.Connections, s.log)
	s.ports.shared = listen.NewLimit(s.ports.budget.Connections)
	s.ports.http, err = listen.Open(ctx, listen.Options{
		HTTP: unlessOff(&s.cfg.HTTP), HTTPS: unlessOff(&s.cfg.HTTPS), Ops: unlessOff(&s.cfg.Ops),
		Connections: s.cfg.Limits.Connections, Shared: s.ports.shared,
		ReadHeader: s.cfg.Timeouts.ReadHeader.Std(), Idle: s.cfg.Timeouts.Idle.Std(),
		HeaderSize: int(s.cfg.Limits.HeaderSize), Log: s.log, Failed: s.failed,
		Proxied: s.cfg.Proxies.SendProtocol, Trusted: s.cfg.Proxies.Set(),
	})
	if err != nil {
		return err
	}
	s.plan.BaseURL = s.cfg.PublicURL() // cfg now has the addresses of the open ports
	s.closers = append(s.closers, func() error { s.ports.http.Close(); return nil })
	return nil
}

// unlessOff returns an address, or nil if it is off.
func unlessOff(address *string) *string {
	if *address == config.Off {
		return nil
	}
	return address
}

// openEtcd starts the embedded etcd, or connects to the external one. The later phases do
// not depend on which one it is.
func (s *server) openEtcd(ctx context.Context) error {
	zap := telemetry.ZapLogger(telemetry.Library(s.log, "etcd"))
	if !s.cfg.Etcd.External() {
		s.stored = true
		member, err := s.topology.startEtcd(ctx,
			etcd.Options{Logger: zap, Log: s.log, QuotaBytes: int64(s.cfg.Etcd.Quota)})
		if err != nil {
			return err
		}
		s.member, s.store = member, member
		s.closers = append(s.closers, member.Close)
		go func() {
			if err, ok := <-member.Failed(); ok && err != nil {
				err = fmt.Errorf("running the embedded etcd: %w", err)
				s.abort(err) // phases that are being opened would wait forever
				s.failed <- err
			}
		}()
	}
	client, err := s.endpoints().Client(zap)
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	s.etcd = client
	s.closers = append(s.closers, client.Close)
	if s.store == nil {
		observer := etcd.Observe(client, s.log)
		s.store = observer
		s.closers = append(s.closers, observer.Close)
	}
	if err := etcd.OpenFormat(ctx, client, s.cfg.Etcd.Prefix, s.log); err != nil {
		return err
	}
	s.stored = true
	return nil
}

// openAudit opens the audit log. It is an early phase, so that the log is closed late and
// contains the last records.
func (s *server) openAudit(context.Context) (err error) {
	path := s.cfg.AuditPath()
	if path == "" {
		return nil
	}
	s.audit, err = audit.OpenTrail(audit.Options{
		Path: path, MaxBytes: int64(s.cfg.Audit.MaxSize), MaxRotated: s.cfg.Audit.Keep, Log: s.log,
		Disk: s.reserve,
	})
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	s.closers = append(s.closers, s.audit.Close)
	return nil
}

func (s *server) openPlane(context.Context) error {
	defaults, own, err := quotasOf(s.cfg)
	if err != nil {
		return err
	}
	s.quotas = quota.New(defaults, own)
	opts := s.planeOptions()
	if s.restored, err = restore.OpenFirstStart(s.cfg.DataDir); err != nil {
		return err
	}
	opts.Restored = s.restored
	s.history = history.New(history.Options{
		Path: s.cfg.Path("history.gz"), Clusters: s.historySources, HasSpace: s.reserve.HasSpace, Logger: s.log,
	})
	if s.plane, s.clusters, err = s.topology.openPlane(opts); err != nil {
		return err
	}
	s.recordHistory()
	s.stager = staging.New(staging.Options{Config: s.cfg, Settings: &s.settings, Plane: s.plane, Etcd: s.etcd})
	s.backups = backup.NewSchedule(backup.ScheduleOptions{
		Directory: s.cfg.Backup.Directory, Every: s.cfg.Backup.Every.Std(), Keep: s.cfg.Backup.Keep,
		WithoutKeys: s.cfg.Backup.WithoutKeys, Stager: s.stager, Log: s.log,
	})
	return nil
}

// recordHistory records the history of the clusters' statistics until they are closed.
func (s *server) recordHistory() {
	ctx, cancel := context.WithCancel(context.Background())
	recording := running{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(recording.ended)
		s.history.Run(ctx)
	}()
	s.closers = append(s.closers, func() error { recording.stop(); return nil })
}

// historySources returns the open clusters for the history of their statistics.
func (s *server) historySources() (list []history.Source) {
	for _, c := range s.plane.Clusters() {
		list = append(list, history.Source{
			UID: c.UID, Statistics: c.Broker.Statistics, Kafka: c.Broker.Kafka, Groups: c.OpenGroups,
		})
	}
	return list
}
