package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"freshet/internal/base/version"
	"freshet/internal/base/web"
	"freshet/internal/config"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/etcd"
	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/ops/telemetry"
	"freshet/internal/server/migrate"
	"freshet/internal/surfaces/refusal"
)

// ensemble contains the parts of a server that exist only in an ensemble
// (docs/adr/0031-members.md).
type ensemble struct {
	credentials *bundle.Credentials
	joining     bundle.JoinConfig
	internal    *internalPort
	network     *membership.Network // calls the other members
	members     *membership.Ensemble
	leave       func() // releases the lease; it can be called several times
	log         natsserver.Log
	leadership  leadership
	changes     changeReceiver
	plane       *datagroup.Plane
	opened      chan struct{} // closed when this member has opened its clusters
}

// openEnsemble reads the member's certificate.
func (s *server) openEnsemble(context.Context) (err error) {
	m := &s.cfg.Members
	if !m.Enabled() {
		return nil
	}
	g := &ensemble{leadership: newLeadership(), changes: newChangeReceiver()}
	if g.credentials, err = bundle.Open(s.cfg.BundleDir(), m.Self); err != nil {
		return err
	}
	if g.joining, err = bundle.ReadJoinConfig(s.cfg.BundleDir()); err != nil {
		return err
	}
	if err := migrate.CheckSeed(s.cfg, g.joining); err != nil {
		return err
	}
	addresses := map[string]string{}
	for _, member := range m.List {
		addresses[member.Name] = member.Internal
	}
	g.network = membership.NewNetwork(g.credentials, addresses)
	s.closers = append(s.closers, func() error { g.network.Close(); return nil })
	s.ensemble = g
	return nil
}

// alive reports whether this server may serve clients: it is a single server, or has its
// lease in the ensemble.
func (s *server) alive() bool { return s.ensemble == nil || s.ensemble.members.Alive() }

// whileAlive returns a handler that serves requests while this member is alive. Otherwise it
// rejects them with the error format of each surface.
func (s *server) whileAlive(routes http.Handler) http.Handler {
	if s.ensemble == nil {
		return routes
	}
	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal.WriteHealth(w, r, web.ErrNoMajority.Error())
	})
	refused := newRouter(mounts(refusingHandlers(web.ErrNoMajority, health), s.cors()), s.cors())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.alive() {
			routes.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		refused.ServeHTTP(w, r)
	})
}

// ensembleChecks returns the checks of /readyz that only members have.
func (s *server) ensembleChecks() []apiserver.Check {
	if s.ensemble == nil {
		return nil
	}
	return []apiserver.Check{
		{Name: "members", Healthy: func() error {
			if s.alive() {
				return nil
			}
			return web.ErrNoMajority
		}},
		{Name: "message-log", Healthy: s.logHealth},
	}
}

func (s *server) logHealth() error {
	if s.ensemble.log == nil {
		return natsserver.ErrNotReady // the message log is not open yet
	}
	return s.ensemble.log.Health()
}

// listenAddress returns the listen address of a member for the address at which the other
// members reach it. It is the configured one (given), or the address itself if it is an IP
// address, or the local IP address to which its name resolves. If the name does not resolve
// to this machine, for example because of a proxy, it is 0.0.0.0; only members can connect.
func listenAddress(ctx context.Context, given, address string) (string, error) {
	if given != "" {
		return given, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if net.ParseIP(host) != nil {
		return address, nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("reading the addresses of this machine: %w", err)
	}
	found, _ := net.DefaultResolver.LookupIPAddr(ctx, host) // the name may not resolve on this machine
	for _, ip := range found {
		for _, local := range own {
			if network, ok := local.(*net.IPNet); ok && network.IP.Equal(ip.IP) {
				return net.JoinHostPort(ip.IP.String(), port), nil
			}
		}
	}
	return net.JoinHostPort("0.0.0.0", port), nil
}

// etcdEnsemble returns the configuration of the embedded etcd as a member of the ensemble, or
// nil for a single server.
func (s *server) etcdEnsemble(ctx context.Context) (*etcd.Ensemble, error) {
	if s.ensemble == nil {
		return nil, nil
	}
	own, _ := s.cfg.Members.Own()
	listen, err := listenAddress(ctx, s.cfg.Members.Listen.Etcd, own.Etcd)
	if err != nil {
		return nil, err
	}
	files := s.ensemble.credentials.Files
	g := &etcd.Ensemble{
		Self: own.Name, Listen: listen, ID: s.ensemble.joining.EnsembleID, Existing: s.ensemble.joining.Existing,
		CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key,
		OnWaiting: func(why string) {
			text := "a majority of its ensemble: " + why
			s.waitsFor.Store(&text)
		},
	}
	for _, m := range s.cfg.Members.List {
		g.Peers = append(g.Peers, etcd.Peer{Name: m.Name, Address: m.Etcd})
	}
	s.log.Info("starting as a member of an ensemble; waiting for a majority", slog.String("member", own.Name),
		slog.Int("members", len(g.Peers)))
	if _, err := os.Stat(s.cfg.Path("etcd", "member")); g.Existing && errors.Is(err, os.ErrNotExist) {
		s.log.Info("member is new to its ensemble; joining its etcd", slog.String("member", own.Name))
	}
	return g, nil
}

// openMembers acquires this member's lease. Stored resources are read after that, so that
// this member does not miss a change that another member has confirmed.
func (s *server) openMembers(ctx context.Context) (err error) {
	if s.ensemble == nil {
		return nil
	}
	own, place := s.cfg.Members.Own()
	text := "its lease in the ensemble"
	s.waitsFor.Store(&text)
	s.ensemble.members, err = membership.Open(ctx, membership.Options{
		Etcd: s.etcd, Prefix: s.cfg.Etcd.Prefix + "/members", Log: s.log, CatchUp: s.catchUp, Probe: s.pingMember,
		Self: membership.Record{
			Name: own.Name, Node: place + 1, Internal: own.Internal,
			HTTP: orEmpty(s.cfg.HTTP), HTTPS: orEmpty(s.cfg.HTTPS),
			Stream:    advertised(s.cfg.Kafka.Plain, s.cfg.Kafka.Advertised),
			StreamTLS: advertised(s.cfg.Kafka.TLS, s.cfg.Kafka.AdvertisedTLS),
			Version:   version.Get().Version, Started: time.Now().UTC().Truncate(time.Second),
		},
	})
	if err != nil {
		return err
	}
	s.ensemble.leave = sync.OnceFunc(func() {
		s.stopConfirming()
		s.ensemble.members.Close()
	})
	s.closers = append(s.closers, func() error {
		s.leaveEnsemble()
		return nil
	})
	return nil
}

// retire prevents this member, which is stopping, from acquiring another lease.
func (s *server) retire() {
	if s.ensemble != nil && s.ensemble.members != nil {
		s.ensemble.members.Retire()
	}
}

// leaveEnsemble releases this member's lease. It is called when no running call needs the lease
// any more. Otherwise the other members would have to wait for its expiry.
func (s *server) leaveEnsemble() {
	if s.ensemble != nil && s.ensemble.leave != nil {
		s.ensemble.leave()
	}
}

// orEmpty returns an address, or "" if it is off.
func orEmpty(address string) string {
	if address == config.Off {
		return ""
	}
	return address
}

// advertised returns the address at which clients reach a listener: the configured one, with
// the port of the listener if it has none.
func advertised(address, configured string) string {
	if orEmpty(address) == "" || configured == "" {
		return orEmpty(address)
	}
	if _, _, err := net.SplitHostPort(configured); err == nil {
		return configured
	}
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(configured, port)
}

// publishReady publishes to the other members whether this one serves clients.
func (s *server) publishReady(ctx context.Context, ready bool) {
	if s.ensemble == nil {
		return
	}
	if err := s.ensemble.members.SetReady(ctx, ready); err != nil {
		s.log.Warn("readiness could not be published to the other members", slog.Any("error", err))
	}
}

// openLog starts this member's NATS server for the message log, or connects to external
// ones.
func (s *server) openLog(ctx context.Context) error {
	if s.ensemble == nil {
		return nil
	}
	if s.cfg.NATS.External() {
		return s.openExternalLog(ctx)
	}
	own, _ := s.cfg.Members.Own()
	listen, err := listenAddress(ctx, s.cfg.Members.Listen.Log, own.Log)
	if err != nil {
		return err
	}
	var routes []string
	for _, m := range s.cfg.Members.List {
		if m.Name != own.Name {
			routes = append(routes, m.Log)
		}
	}
	secured := s.ensemble.credentials.ServerTLS(s.memberNames())
	secured.RootCAs = s.ensemble.credentials.Authority()
	log, err := natsserver.Start(ctx, natsserver.Options{
		Name: own.Name, ClusterName: s.ensemble.joining.EnsembleID, Dir: s.cfg.Path("log"),
		Listen: listen, Advertise: own.Log, Routes: routes, TLS: secured, Logger: telemetry.Library(s.log, "nats"),
	})
	if err != nil {
		return err
	}
	s.metrics.Registry().MustRegister(log)
	return s.useLog(ctx, log, "a majority of its ensemble: the message log has no leader yet")
}

// openExternalLog connects to external NATS servers.
func (s *server) openExternalLog(ctx context.Context) error {
	servers := externalNATS(s.cfg)
	servers.Logger = s.log
	log, err := natsserver.Dial(servers)
	if err != nil {
		return err
	}
	return s.useLog(ctx, log, "the NATS servers of nats.urls: they do not meet the requirements; see the log")
}

// useLog waits until the message log is writable.
func (s *server) useLog(ctx context.Context, log natsserver.Log, waitsFor string) error {
	s.ensemble.log = log
	s.closers = append(s.closers, func() error { log.Close(); return nil })
	s.waitsFor.Store(&waitsFor)
	return log.Ready(ctx)
}

func (s *server) memberNames() []string {
	var names []string
	for _, m := range s.cfg.Members.List {
		names = append(names, m.Name)
	}
	return names
}
