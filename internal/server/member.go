package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"freshet/internal/base/version"
	"freshet/internal/base/web"
	"freshet/internal/broker/groups"
	"freshet/internal/config"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/bootstrap"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/dataplane"
	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/forwarding"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/ensemble/remote"
	"freshet/internal/ops/listen"
	"freshet/internal/ops/telemetry"
	"freshet/internal/server/migrate"
	"freshet/internal/server/rejoin"
	"freshet/internal/server/sharedfiles"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/kafkaapi"
)

// internalConnections bounds the connections of the internal port. It is far more than the members
// open: one each, 64 for forwarded requests, and broken ones.
const internalConnections = 1024

// member is the topology of a member of an ensemble (docs/adr/0031-members.md).
type member struct {
	*ensemble.Member // set by openCredentials
	s                *server
	router           *datagroup.Router
	opened           chan struct{} // closed when this member has opened its clusters
	started          chan struct{} // closed when this member has done the first start
}

func newMember(s *server) *member {
	return &member{s: s, opened: make(chan struct{}), started: make(chan struct{})}
}

// openCredentials reads the member's certificate.
func (t *member) openCredentials(context.Context) (err error) {
	s := t.s
	options := rejoin.Options(s.cfg, s.log)
	options.Requests = clientRequests{}
	if t.Member, err = ensemble.Open(options); err != nil {
		return err
	}
	s.servers = t.Member
	s.closers = append(s.closers, t.Close)
	return migrate.CheckSeed(s.cfg, t.JoinConfig())
}

// clientRequests implements forwarding.Requests for the calls on clusters, which are the calls that
// are forwarded.
type clientRequests struct{}

// RequestID implements forwarding.Requests.
func (clientRequests) RequestID(r *http.Request) string { return web.RecordOf(r.Context()).RequestID }

// Refuse implements forwarding.Requests.
func (clientRequests) Refuse(w http.ResponseWriter, r *http.Request, err, cause error) {
	brokerhttp.Refuse(w, r, err)
	web.RecordOf(r.Context()).Fail(cause) // the log has the cause, the client the public error
}

// openPort opens the port for the other members, and restores the secrets that they share.
func (t *member) openPort(ctx context.Context) error {
	err := t.Listen(ctx, ensemble.ListenOptions{
		Address: t.s.cfg.Members.Listen.Internal, IdleTimeout: t.s.cfg.Timeouts.Idle.Std(),
		Limit: listen.NewLimit(internalConnections), Failed: t.s.failed,
	})
	if err != nil {
		return err
	}
	t.Handle("POST "+sharedfiles.Path, sharedfiles.Handler(t.s.cfg))
	return sharedfiles.Restore(ctx, t.s.cfg, t.Member, t.s.log)
}

// startEtcd starts the embedded etcd as a member of the ensemble.
func (t *member) startEtcd(ctx context.Context, opts etcd.Options) (*etcd.Member, error) {
	s := t.s
	own, _ := s.cfg.Members.Own()
	listen, err := ensemble.ListenAddress(ctx, s.cfg.Members.Listen.Etcd, own.Etcd)
	if err != nil {
		return nil, err
	}
	files, joining := t.Credentials().Files, t.JoinConfig()
	g := &etcd.Ensemble{
		Self: own.Name, Listen: listen, ID: joining.EnsembleID, Existing: joining.Existing,
		CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key,
		Reporter: t,
	}
	for _, m := range s.cfg.Members.List {
		g.Peers = append(g.Peers, etcd.Peer{Name: m.Name, Address: m.Etcd})
	}
	s.log.Info("starting as a member of an ensemble; waiting for a majority", slog.String("member", own.Name),
		slog.Int("members", len(g.Peers)))
	if _, err := os.Stat(s.cfg.Path("etcd", "member")); g.Existing && errors.Is(err, os.ErrNotExist) {
		s.log.Info("member is new to its ensemble; joining its etcd", slog.String("member", own.Name))
	}
	return rejoin.Start(ctx, s.cfg, t.Member, g, opts)
}

// ReportWaiting implements etcd.Reporter with the health pages.
func (t *member) ReportWaiting(why string) { t.s.waitFor("a majority of its ensemble: " + why) }

// openLog starts this member's NATS server for the message log, or connects to external
// ones.
func (t *member) openLog(ctx context.Context) error {
	s := t.s
	var log natsserver.Log
	if s.cfg.NATS.External() {
		external := externalNATS(s.cfg)
		external.Logger = s.log
		dialed, err := natsserver.Dial(external)
		if err != nil {
			return err
		}
		log = dialed
		s.waitFor("the NATS servers of nats.urls: they do not meet the requirements; see the log")
	} else {
		err := datagroup.PublishMarks(ctx, s.etcd, s.cfg.Etcd.Prefix, t.Self(), s.cfg.Path("clusters"))
		if err != nil {
			s.log.Warn("publishing the last acknowledged positions failed; the shards publish them when they open",
				slog.Any("error", err))
		}
		started, err := t.StartLog(ctx, ensemble.LogOptions{
			Dir: s.cfg.Path("log"), Listen: s.cfg.Members.Listen.Log, Logger: telemetry.Library(s.log, "nats"),
			ReportWaiting: func(why string) { s.waitFor("good copies of its logs: " + why) },
		})
		if err != nil {
			return err
		}
		s.metrics.Registry().MustRegister(started)
		log = started
		s.waitFor("a majority of its ensemble: the message log has no leader yet")
	}
	s.closers = append(s.closers, func() error { log.Close(); return nil })
	return t.UseLog(ctx, log)
}

// join acquires this member's lease.
func (t *member) join(ctx context.Context) error {
	s := t.s
	s.waitFor("its lease in the ensemble")
	own, _ := s.cfg.Members.Own()
	plain, _, secured, _ := s.cfg.Kafka.Addresses()
	err := t.Join(ctx, ensemble.JoinOptions{
		Client: s.etcd, Prefix: s.cfg.Etcd.Prefix, Etcd: memberEtcd{s}, State: t,
		Record: membership.Record{
			HTTP: orEmpty(s.cfg.HTTP), HTTPS: orEmpty(s.cfg.HTTPS),
			Stream:    kafkaAddress(plain, s.cfg.Kafka.Advertised, own.Internal),
			StreamTLS: kafkaAddress(secured, s.cfg.Kafka.AdvertisedTLS, own.Internal),
			Version:   version.Get().Version, Started: time.Now().UTC().Truncate(time.Second),
		},
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { t.Leave(); return nil })
	go sharedfiles.Compare(ctx, s.cfg, t.Member, s.log) // it only logs, and its calls have timeouts
	return t.awaitSameList(ctx)
}

// awaitSameList waits until the other members have the same members.list as this one.
func (t *member) awaitSameList(ctx context.Context) error {
	return t.AwaitSameList(ctx, func(why string) { t.s.waitFor("the same members.list on all members: " + why) })
}

// orEmpty returns an address, or "" if it is off.
func orEmpty(address string) string {
	if address == config.Off {
		return ""
	}
	return address
}

// kafkaAddress returns the address at which clients reach a Kafka listener of a member, "" if it is off: the
// advertised one, with the port of the listener if it has none. A listener on all addresses of its machine
// is reached at the host of internal, the member's address in members.list.
func kafkaAddress(listen, advertised, internal string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil { // off
		return ""
	}
	if advertised == "" {
		if ip := net.ParseIP(host); host != "" && !ip.IsUnspecified() {
			return listen
		}
		advertised, _, _ = net.SplitHostPort(internal)
	}
	if _, _, err := net.SplitHostPort(advertised); err == nil {
		return advertised
	}
	return net.JoinHostPort(advertised, port)
}

// memberEtcd implements ensemble.Etcd with the embedded or the external etcd.
type memberEtcd struct{ s *server }

// External implements ensemble.Etcd.
func (e memberEtcd) External() bool { return e.s.cfg.Etcd.External() }

// Leader implements ensemble.Etcd.
func (e memberEtcd) Leader() string {
	if e.External() {
		return ""
	}
	return e.s.member.Leader()
}

// StepDown implements ensemble.Etcd.
func (e memberEtcd) StepDown(ctx context.Context) (led bool, err error) {
	if e.External() {
		return false, nil
	}
	return e.s.member.StepDown(ctx)
}

// Replace implements ensemble.Etcd.
func (e memberEtcd) Replace(ctx context.Context, name string) error {
	lost := etcd.Peer{Name: name}
	for _, m := range e.s.cfg.Members.List {
		if m.Name == name {
			lost.Address = m.Etcd
		}
	}
	return etcd.ReplaceMember(ctx, e.s.etcd, lost)
}

// replicas returns the other members.
func (t *member) replicas() kinds.Replicas { return replicas{t.s} }

// recorder returns nil: the elected member has controllers of its own, see control.
func (*member) recorder() reconcile.Recorder { return nil }

// CatchUp implements membership.State: it applies the changes that were stored while this member
// had no lease.
func (t *member) CatchUp(ctx context.Context) error {
	if err := t.s.loops.CatchUp(ctx); err != nil {
		return err
	}
	if err := t.s.signIn.Reload(ctx); err != nil {
		return err
	}
	return t.s.identity.keys.Refresh(ctx)
}

func (t *member) startLoading() { t.Receive(t.s.applyChange) }

func (t *member) finishLoading(ctx context.Context) error {
	if err := t.s.identity.keys.Refresh(ctx); err != nil { // they were read before changes were received
		return err
	}
	t.FinishLoading()
	return nil
}

// runControllers keeps accounts and bindings of this member up to date, and takes part in the
// election of the member that runs the controllers.
func (t *member) runControllers(ctx context.Context) {
	go func() { _ = t.Lead(ctx, t.control) }() // it returns no error; StopLeading waits for its end
	t.s.loops.Follow(ctx)
}

// control runs the controllers, the first start, which needs them, and scheduled backups, on the
// elected member.
func (t *member) control(ctx context.Context) error {
	s := t.s
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loops, err := s.kinds.Controllers(s.api.Loopback(), s.api.Recorder())
	if err != nil {
		return err
	}
	if err := loops.Load(ctx); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- loops.Run(ctx) }()
	err = t.bootstrap(ctx)
	if err == nil {
		backups := make(chan struct{})
		go func() { defer close(backups); s.backups.Run(ctx) }()
		select {
		case err = <-ended:
			ended <- nil
		case <-ctx.Done():
		}
		cancel()
		<-backups
	}
	cancel()
	return errors.Join(err, <-ended)
}

// bootstrap publishes the server-defined objects and does the first start of the ensemble if it
// has not been done.
func (t *member) bootstrap(ctx context.Context) error {
	s := t.s
	if err := s.loops.Publish(ctx); err != nil {
		return err
	}
	first, err := bootstrap.Run(ctx, s.firstStartOptions())
	if err != nil {
		return err
	}
	if err := t.MarkStarted(ctx); err != nil {
		return err
	}
	select {
	case <-t.started:
		return nil // this member has led before
	default:
	}
	if first {
		if s.link, _, err = s.adminLink(ctx, firstLinkLifetime); err != nil {
			return err
		}
	}
	close(t.started)
	return nil
}

// firstStart waits until the first start of the ensemble is done, and writes the administrator's
// files of this member. Only the member that did the first start shows the sign-in link.
func (t *member) firstStart(ctx context.Context) error {
	s := t.s
	s.waitFor("the first start of the ensemble by its elected member")
	for {
		try, cancel := context.WithTimeout(ctx, bootstrap.Timeout)
		err := bootstrap.WriteFiles(try, s.firstStartOptions())
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Warn("waiting for the first start of the ensemble", slog.Any("error", err))
	}
	if err := t.AwaitStarted(ctx); err != nil {
		return err
	}
	s.waitFor("its clusters")
	select {
	case <-t.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.awaitClusters(ctx); err != nil {
		s.log.Warn("cluster is not open on this member yet; the other members serve it", slog.Any("error", err))
	}
	return nil
}

// runBackups does nothing: the elected member takes scheduled backups, see control.
func (*member) runBackups(context.Context) {}

// openPlane opens the data plane of this member, serves its shards to the other members, and
// follows the stored list of clusters that should run.
func (t *member) openPlane(opts dataplane.Options) (*dataplane.Plane, clusterPlane, error) {
	s := t.s
	log, err := t.ConnectLog("data plane")
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the message log: %w", err)
	}
	shared, err := datagroup.New(datagroup.Options{
		Self: t.Self(), Members: t.Names(), Membership: t.Member, Etcd: s.etcd, Prefix: s.cfg.Etcd.Prefix,
		Clusters: s.cfg.Path("clusters"), Log: log, Logger: s.log,
		Integrity: t.Integrity(),
	})
	if err != nil {
		return nil, nil, err
	}
	s.metrics.Registry().MustRegister(shared.Appends())
	local, err := dataplane.OpenMember(opts, shared)
	if err != nil {
		return nil, nil, err
	}
	s.closers = append(s.closers, local.Close)
	plane := datagroup.NewPlane(local, shared)
	t.router = &datagroup.Router{Members: t.Member, Local: localClusters{local, s}, History: s.history, Logger: s.log}
	t.SetApplied(plane.Applied)
	t.SetClusterProblems(plane.Problems)
	t.Handle(remote.Path, remote.NewServer(local, s.log))
	t.Handle(datagroup.CheckpointsPath+"/", shared.CheckpointHandler())
	t.Handle(datagroup.JournalsPath+"/", shared.JournalHandler())
	t.Handle(datagroup.ReleasePath, plane.ReleaseHandler())
	t.Handle("POST "+datagroup.ReadingPath, t.router.ReadingHandler())
	t.Handle("POST "+datagroup.HistoryPath, t.router.HistoryHandler())
	t.Handle(forwarding.Path, forwarding.Handler(s.forwardedHandler(), web.RequestIDHeader))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		plane.Follow(ctx, t.opened)
	}()
	observed := make(chan struct{})
	go func() {
		defer close(observed)
		t.Observe(ctx)
	}()
	s.metrics.Registry().MustRegister(t.Collector())
	s.closers = append(s.closers, func() error {
		cancel()
		<-ended
		<-observed
		return nil
	})
	return local, plane, nil
}

// localClusters implements datagroup.LocalClusters with the data plane of this member.
type localClusters struct {
	*dataplane.Plane
	s *server
}

// Groups implements datagroup.LocalClusters.
func (l localClusters) Groups(c *dataplane.Cluster) (*groups.Coordinator, error) {
	return l.s.groupsOf(c)
}

// forwardedHandler serves the requests that other members forward, like those of clients.
func (s *server) forwardedHandler() http.Handler {
	bounded := web.LimitHeaders(web.LimitBodyTime(&s.front, s.cfg.Timeouts.ReadBody.Std()),
		int(s.cfg.Limits.HeaderSize))
	return web.MiddlewareWithShutdown(bounded, s.access, nil, &s.ending)
}

func (t *member) routes(c *dataplane.Cluster) brokerhttp.Members { return t.router.Routes(c) }

func (t *member) nodes(c *dataplane.Cluster) kafkaapi.Members { return t.router.Nodes(c) }

// refuseEarly resets connections, so that clients connect to another member.
func (*member) refuseEarly(port *net.TCPListener) (end func()) { return listen.ResetConnections(port) }

func (t *member) checks() []apiserver.Check {
	return []apiserver.Check{
		{Name: "members", Healthy: func() error {
			if t.Alive() {
				return nil
			}
			return web.ErrNoMajority
		}},
		{Name: "message-log", Healthy: t.LogHealth},
	}
}

// degraded returns what is not as it should be while this member serves clients.
func (t *member) degraded() []string { return t.Observation().Degraded() }

// externalNATS returns the addresses and credentials of the external NATS servers.
func externalNATS(cfg *config.Config) natsserver.ExternalOptions {
	c := &cfg.NATS
	return natsserver.ExternalOptions{
		URLs: c.URLs, Credentials: c.Credentials, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Monitoring: c.Monitoring, Replicas: len(cfg.Members.List),
	}
}

// CheckMessageLog checks the external NATS servers of a configuration without changing them. It
// returns a description, the problems that prevent their use, and warnings.
func CheckMessageLog(ctx context.Context, cfg *config.Config) (is string, wrong, unsure []string, err error) {
	remote, err := natsserver.Dial(externalNATS(cfg))
	if err != nil {
		return "", nil, nil, err
	}
	defer remote.Close()
	is, problems := remote.Inspect(ctx)
	for _, p := range problems {
		if p.Fatal {
			wrong = append(wrong, p.Message)
		} else {
			unsure = append(unsure, p.Message)
		}
	}
	return is, wrong, unsure, nil
}
