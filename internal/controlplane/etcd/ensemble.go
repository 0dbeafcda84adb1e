package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	serrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
)

// Peer is the name of an ensemble member and the address at which the other members reach it.
type Peer struct{ Name, Address string }

// Ensemble configures a member that runs in an ensemble. The member listens for its peers only, and
// both ends of a connection authenticate with a certificate of the ensemble's authority. Clients
// connect from inside the process only, as with a single member.
type Ensemble struct {
	// Self is the name of this member. Peers contains all members, this one included.
	Self  string
	Peers []Peer
	// Listen is the IP address and port that peers connect to.
	Listen string
	// ID is the same on all members and different for every other ensemble.
	ID string
	// Existing is set when a member without data joins a running ensemble in place of a lost
	// member.
	Existing                  bool
	CAFile, CertFile, KeyFile string
	Reporter                  Reporter
}

// Reporter shows the operator why a member is not ready yet.
type Reporter interface {
	// ReportWaiting is called from time to time until the member is ready.
	ReportWaiting(why string)
}

const (
	// ensembleTickMillis and ensembleElectionMillis, in milliseconds, are etcd's defaults for members in one data
	// center: a leader that sends nothing for a second is replaced.
	ensembleTickMillis     = 100
	ensembleElectionMillis = 1000
	// waitingLogInterval is the interval at which a waiting member logs that it waits.
	waitingLogInterval = 10 * time.Second
	// joinRetryInterval is the retry interval of a member that has found no other member to join.
	joinRetryInterval = time.Second
)

// configure adds the ensemble's settings to cfg. The peer server opens the listener, not etcd.
func (g *Ensemble) configure(cfg *embed.Config) {
	cfg.Name = g.Self
	for _, p := range g.Peers {
		if p.Name == g.Self {
			cfg.AdvertisePeerUrls = []url.URL{httpsURL(p.Address)}
		}
	}
	cfg.InitialCluster, cfg.InitialClusterToken = g.initialCluster(), g.ID
	if g.Existing {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	cfg.PeerTLSInfo = g.tls()
	cfg.TickMs, cfg.ElectionMs = ensembleTickMillis, ensembleElectionMillis
}

// tls returns the certificates with which members authenticate each other.
func (g *Ensemble) tls() transport.TLSInfo {
	info := transport.TLSInfo{
		CertFile: g.CertFile, KeyFile: g.KeyFile, TrustedCAFile: g.CAFile, ClientCertAuth: true,
		// A certificate of the authority that names a member is sufficient, whatever address the
		// connection comes from.
		SkipClientSANVerify: true,
	}
	for _, p := range g.Peers {
		info.AllowedCNs = append(info.AllowedCNs, p.Name)
	}
	return info
}

func httpsURL(address string) url.URL { return url.URL{Scheme: "https", Host: address} }

// initialCluster lists the members in etcd's syntax.
func (g *Ensemble) initialCluster() string {
	list := make([]string, len(g.Peers))
	for i, p := range g.Peers {
		at := httpsURL(p.Address)
		list[i] = p.Name + "=" + at.String()
	}
	return strings.Join(list, ",")
}

// ErrDataLost reports that the member has lost its data and cannot rejoin under its old identity.
var ErrDataLost = errs.New(errs.Precondition,
	"data directory is empty, but the ensemble already has a member of this name, and a second one would vote twice; "+
		"fetch the data from the others with freshet ensemble rejoin, or, on a new machine, create a new member with "+
		"freshet ensemble replace")

// joinError returns why a member of an ensemble cannot start, and whether a retry may succeed.
func (o *Options) joinError(dir string, err error) (again bool, _ error) {
	text := err.Error()
	switch {
	case errors.Is(err, ErrDataLost), strings.Contains(text, "has already been bootstrapped"):
		return false, ErrDataLost
	case errors.Is(err, errNoOther), strings.Contains(text, "could not retrieve cluster information"):
		return true, errNoOther
	case strings.Contains(text, "incompatible with current running cluster"): // also if no member returns its version
		return true, errors.New("one member was reached, but no member returned an etcd version that is compatible " +
			"with this one; check that the members run, all with the same version of freshet")
	case strings.Contains(text, "member count is unequal"),
		strings.Contains(text, "unmatched member while checking PeerURLs"):
		return false, errs.New(errs.Precondition, "members of the ensemble differ from members.list, or this member "+
			"is not one of them; see freshet ensemble status, and freshet ensemble replace for a lost machine")
	}
	return false, o.startError(dir, err)
}

// Join starts a member of an ensemble that stores its data in dir, and returns when the member
// belongs to a majority.
func Join(ctx context.Context, dir string, g *Ensemble, opts Options) (_ *Member, err error) {
	if err := opts.prepare(dir); err != nil {
		return nil, err
	}
	p, err := g.openPeerServer()
	if err != nil {
		return nil, fmt.Errorf("starting embedded etcd as member %s: %w", g.Self, err)
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	e, cfg, crashes, err := g.join(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	p.serve(e)
	if err = g.awaitMajority(ctx, dir, e, crashes, opts); err != nil {
		return nil, err
	}
	m := serve(e, cfg, dir, crashes, opts)
	if err = g.compareContent(ctx, m, opts); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.peerServer = p
	go func() {
		if err := <-p.done; err != nil {
			m.fail(err)
		}
	}()
	return m, nil
}

// compareContent returns an error if the content of a started member differs from that of the others
// (compare.go), and begins to compare it after each compaction otherwise.
func (g *Ensemble) compareContent(ctx context.Context, m *Member, opts Options) error {
	c, err := g.newComparer(m.etcd, opts.Log)
	if err != nil {
		return err
	}
	cause := c.damage(ctx)
	switch {
	case cause != nil:
		err = opts.damagedError(m.dir, cause)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		c.close()
		return err
	}
	m.compareDone = make(chan struct{})
	go m.watchContent(c, opts)
	return nil
}

// join starts the member's etcd, and retries while it finds no other member to join.
func (g *Ensemble) join(ctx context.Context, dir string,
	opts Options,
) (*embed.Etcd, *embed.Config, *crashGuard, error) {
	logTick := time.NewTicker(waitingLogInterval)
	defer logTick.Stop()
	for {
		e, cfg, crashes, err := g.try(ctx, dir, opts)
		if err == nil {
			return e, cfg, crashes, nil
		}
		again, err := opts.joinError(dir, err)
		if !again {
			return nil, nil, nil, fmt.Errorf("starting embedded etcd as member %s: %w", g.Self, err)
		}
		g.Reporter.ReportWaiting(err.Error())
		select {
		case <-logTick.C:
			opts.Log.Warn("member has no data yet and waits for one with data; check that the others run and that "+
				"their etcd addresses can be reached",
				slog.String("member", g.Self), slog.Any("error", err))
		case <-time.After(joinRetryInterval):
		case <-ctx.Done():
			return nil, nil, nil, context.Cause(ctx)
		}
	}
}

// try starts the member's etcd once.
func (g *Ensemble) try(ctx context.Context, dir string, opts Options) (*embed.Etcd, *embed.Config, *crashGuard, error) {
	if g.Existing && !HasLog(dir) {
		if err := g.checkNotJoined(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	crashes := newCrashGuard()
	cfg, err := configure(dir, opts, crashes, g.configure)
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := crashes.start(cfg)
	return e, cfg, crashes, err
}

// awaitMajority returns when the member belongs to a majority.
func (g *Ensemble) awaitMajority(ctx context.Context, dir string, e *embed.Etcd, crashes *crashGuard,
	opts Options,
) error {
	tick := time.NewTicker(waitingLogInterval)
	defer tick.Stop()
	g.Reporter.ReportWaiting(g.majority())
	for {
		select {
		case <-e.Server.ReadyNotify():
			return nil
		case err := <-crashes.crashed:
			return opts.startError(dir, err)
		case <-e.Server.StopNotify():
			return fmt.Errorf("starting embedded etcd as member %s: the member was removed from the ensemble; create "+
				"a new member with freshet ensemble replace", g.Self)
		case <-tick.C:
			opts.Log.Warn("member waits for a majority of the ensemble; check that the others run and that their etcd "+
				"addresses can be reached",
				slog.String("member", g.Self), slog.String("needs", g.majority()))
		case <-ctx.Done():
			e.Close()
			return context.Cause(ctx)
		}
	}
}

func (g *Ensemble) majority() string {
	return fmt.Sprintf("%d of %d members", len(g.Peers)/2+1, len(g.Peers))
}

// Leader returns the name of the leader, or "" if there is none.
func (m *Member) Leader() string {
	leader := m.etcd.Server.Leader()
	for _, member := range m.etcd.Server.Cluster().Members() {
		if member.ID == leader {
			return member.Name
		}
	}
	return ""
}

// StepDown transfers leadership to another member if this one leads, and reports whether it led.
func (m *Member) StepDown(ctx context.Context) (led bool, err error) {
	server := m.etcd.Server
	self := server.MemberID()
	if server.Leader() != self {
		return false, nil
	}
	for _, other := range server.Cluster().Members() {
		if other.ID == self || other.IsLearner {
			continue
		}
		try, cancel := context.WithTimeout(ctx, stepDownTimeout)
		err = server.MoveLeader(try, uint64(self), uint64(other.ID))
		cancel()
		if err == nil {
			return true, nil
		}
	}
	return true, errs.Newf(errs.Unavailable,
		"no other member became the leader of etcd; retry when the others are ready: %w", err)
}

// ReplaceMember removes a lost member from the ensemble and adds a new one, without data, at its
// address.
func ReplaceMember(ctx context.Context, client *clientv3.Client, lost Peer) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("listing the members of etcd: %w", err)
	}
	at := "https://" + lost.Address
	for _, member := range list.Members {
		if member.Name == "" && len(member.PeerURLs) == 1 && member.PeerURLs[0] == at {
			return nil // an earlier call has added it
		}
		if member.Name == lost.Name {
			if _, err := client.MemberRemove(ctx, member.ID); err != nil {
				return fmt.Errorf("removing member %s from etcd: %w", lost.Name, err)
			}
		}
	}
	// etcd requires the other members to have been connected for some seconds.
	for {
		_, err := client.MemberAdd(ctx, []string{at})
		if err == nil {
			return nil
		}
		// A client in the same process gets the server's error value.
		again := errors.Is(err, rpctypes.ErrUnhealthy) || errors.Is(err, serrors.ErrUnhealthy)
		if !again || ctx.Err() != nil {
			return fmt.Errorf("adding the new member %s to etcd: %w", lost.Name, err)
		}
		_ = retry.Sleep(ctx, joinRetryInterval) // the next call fails if the context has ended
	}
}
