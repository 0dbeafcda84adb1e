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
	datagroup "freshet/internal/dataplane/group"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/ops/telemetry"
)

// group is what a server has that is a member of a group (docs/adr/0031-members.md).
type group struct {
	credentials *bundle.Credentials
	joining     bundle.Joining
	internal    *internal
	network     *membership.Network // calls the other members
	members     *membership.Group
	leave       func() // gives the lease back, once
	log         natsserver.Log
	leading     leading
	hearing     hearing
	plane       *datagroup.Plane
	opened      chan struct{} // closed when this member has opened what should run
}

// openGroup reads the member's certificate.
func (s *server) openGroup(context.Context) (err error) {
	m := &s.cfg.Members
	if !m.On() {
		return nil
	}
	g := &group{leading: newLeading(), hearing: newHearing()}
	if g.credentials, err = bundle.Open(s.cfg.BundleDir(), m.Self); err != nil {
		return err
	}
	if g.joining, err = bundle.ReadJoining(s.cfg.BundleDir()); err != nil {
		return err
	}
	if err := s.seedIsThere(g.joining); err != nil {
		return err
	}
	addresses := map[string]string{}
	for _, member := range m.List {
		addresses[member.Name] = member.Internal
	}
	g.network = membership.NewNetwork(g.credentials, addresses)
	s.closers = append(s.closers, func() error { g.network.Close(); return nil })
	s.group = g
	return nil
}

// alive says whether this server may answer clients: it is alone, or has its lease in
// the group.
func (s *server) alive() bool { return s.group == nil || s.group.members.Alive() }

// whileAlive serves clients while this member may answer, and else refuses them in the
// form of each surface.
func (s *server) whileAlive(routes http.Handler) http.Handler {
	if s.group == nil {
		return routes
	}
	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeHealth(w, r, web.ErrNoMajority.Error())
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

// groupChecks are what /readyz asks of a member.
func (s *server) groupChecks() []apiserver.Check {
	if s.group == nil {
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
	if s.group.log == nil {
		return natsserver.ErrNotReady // it has not been opened
	}
	return s.group.log.Health()
}

// listenAddress is where a member listens that others reach at an address: where its
// configuration says (given), else at the address itself, or for a name of this machine at what that means
// here. A name that
// leads here by way of another machine is listened for everywhere; only members can
// connect.
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
		return "", fmt.Errorf("asking for the addresses of this machine: %w", err)
	}
	found, _ := net.DefaultResolver.LookupIPAddr(ctx, host) // it may not be known here
	for _, ip := range found {
		for _, local := range own {
			if network, ok := local.(*net.IPNet); ok && network.IP.Equal(ip.IP) {
				return net.JoinHostPort(ip.IP.String(), port), nil
			}
		}
	}
	return net.JoinHostPort("0.0.0.0", port), nil
}

// etcdGroup is how the embedded etcd runs with those of the other members; nil when
// this server is alone.
func (s *server) etcdGroup(ctx context.Context) (*etcd.Group, error) {
	if s.group == nil {
		return nil, nil
	}
	own, _ := s.cfg.Members.Own()
	listen, err := listenAddress(ctx, s.cfg.Members.Listen.Etcd, own.Etcd)
	if err != nil {
		return nil, err
	}
	files := s.group.credentials.Files
	g := &etcd.Group{
		Self: own.Name, Listen: listen, ID: s.group.joining.Group, Existing: s.group.joining.Existing,
		CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key,
		Waiting: func(why string) {
			text := "a majority of its group: " + why
			s.waits.Store(&text)
		},
	}
	for _, m := range s.cfg.Members.List {
		g.Peers = append(g.Peers, etcd.Peer{Name: m.Name, Address: m.Etcd})
	}
	s.log.Info("starting as a member of a group; it is ready when a majority runs", slog.String("member", own.Name),
		slog.Int("members", len(g.Peers)))
	if _, err := os.Stat(s.cfg.Path("etcd", "member")); g.Existing && errors.Is(err, os.ErrNotExist) {
		s.log.Info("this member is new to its group and joins its etcd", slog.String("member", own.Name))
	}
	return g, nil
}

// openMembers takes this member's lease. Whatever is read of the stored resources is
// read after that, so that it misses nothing that others waited for.
func (s *server) openMembers(ctx context.Context) (err error) {
	if s.group == nil {
		return nil
	}
	own, place := s.cfg.Members.Own()
	text := "its lease in the group"
	s.waits.Store(&text)
	s.group.members, err = membership.Open(ctx, membership.Options{
		Etcd: s.etcd, Prefix: s.cfg.Etcd.Prefix + "/members", Log: s.log, CatchUp: s.catchUp, Reach: s.reach,
		Self: membership.Record{
			Name: own.Name, Node: place + 1, Internal: own.Internal,
			HTTP: open(s.cfg.HTTP), HTTPS: open(s.cfg.HTTPS),
			Stream:    advertised(s.cfg.Stream.Plain, s.cfg.Stream.Advertised),
			StreamTLS: advertised(s.cfg.Stream.TLS, s.cfg.Stream.AdvertisedTLS),
			Version:   version.Get().Version, Started: time.Now().UTC().Truncate(time.Second),
		},
	})
	if err != nil {
		return err
	}
	s.group.leave = sync.OnceFunc(func() {
		s.stopConfirming()
		s.group.members.Close()
	})
	s.closers = append(s.closers, func() error {
		s.leaveGroup()
		return nil
	})
	return nil
}

// retire keeps this member, which is about to leave, from taking another lease.
func (s *server) retire() {
	if s.group != nil && s.group.members != nil {
		s.group.members.Retire()
	}
}

// leaveGroup gives this member's lease back, once nothing is called any more that needs
// it. Others would find out that nobody listens here, and take it.
func (s *server) leaveGroup() {
	if s.group != nil && s.group.leave != nil {
		s.group.leave()
	}
}

// open is an address, or "" for one that is off.
func open(address string) string {
	if address == config.Off {
		return ""
	}
	return address
}

// advertised is where clients reach an address that is listened on: what is
// configured, with the port of the listener where that names none.
func advertised(address, configured string) string {
	if open(address) == "" || configured == "" {
		return open(address)
	}
	if _, _, err := net.SplitHostPort(configured); err == nil {
		return configured
	}
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(configured, port)
}

// tellReady tells the other members whether this one serves clients.
func (s *server) tellReady(ctx context.Context, ready bool) {
	if s.group == nil {
		return
	}
	if err := s.group.members.SetReady(ctx, ready); err != nil {
		s.log.Warn("the other members could not be told whether this one is ready", slog.String("error", err.Error()))
	}
}

// openLog starts this member's part of the log of messages.
func (s *server) openLog(ctx context.Context) error {
	if s.group == nil {
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
	secured := s.group.credentials.Server(s.memberNames())
	secured.RootCAs = s.group.credentials.Authority()
	log, err := natsserver.Start(ctx, natsserver.Options{
		Name: own.Name, ClusterName: s.group.joining.Group, Dir: s.cfg.Path("log"),
		Listen: listen, Advertise: own.Log, Routes: routes, TLS: secured, Logger: telemetry.Library(s.log, "nats"),
	})
	if err != nil {
		return err
	}
	s.metrics.Registry().MustRegister(log)
	return s.useLog(ctx, log, "a majority of its group: the log of messages has no leader yet")
}

// openExternalLog connects to NATS servers that others run.
func (s *server) openExternalLog(ctx context.Context) error {
	servers := external(s.cfg)
	servers.Logger = s.log
	log, err := natsserver.Dial(servers)
	if err != nil {
		return err
	}
	return s.useLog(ctx, log, "the NATS servers of nats.urls: they are not as they have to be, the log says why")
}

// useLog waits until the log of messages can be written.
func (s *server) useLog(ctx context.Context, log natsserver.Log, waitsFor string) error {
	s.group.log = log
	s.closers = append(s.closers, func() error { log.Close(); return nil })
	s.waits.Store(&waitsFor)
	return log.Ready(ctx)
}

func (s *server) memberNames() []string {
	var names []string
	for _, m := range s.cfg.Members.List {
		names = append(names, m.Name)
	}
	return names
}
