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
)

// Peer is a member of a group and where the others reach it.
type Peer struct{ Name, Address string }

// Group has a member run with others. It listens for them and for nobody else: each
// side shows a certificate of the group's authority. Clients reach it from inside
// the process only, as without a group.
type Group struct {
	// Self is the name of this member, Peers all of them with it.
	Self  string
	Peers []Peer
	// Listen is the IP address and port that peers connect to.
	Listen string
	// ID is the same on all members, and unlike that of every other group.
	ID string
	// Existing says that a member without data joins a group that runs, in place of
	// one that is lost.
	Existing                  bool
	CAFile, CertFile, KeyFile string
	// Waiting is told why the member is not ready yet, every now and then.
	Waiting func(why string)
}

const (
	// groupTick and groupElection are etcd's own for members in one place: a leader
	// that is silent for a second is replaced.
	groupTick     = 100
	groupElection = 1000
	// waitingEvery is how often a member that waits says so.
	waitingEvery = 10 * time.Second
	// joinAgain is how long a member waits that found nobody to join.
	joinAgain = time.Second
)

// configure makes the member one of the group. etcd itself listens nowhere: port does.
func (g *Group) configure(cfg *embed.Config) {
	cfg.Name = g.Self
	for _, p := range g.Peers {
		if p.Name == g.Self {
			cfg.AdvertisePeerUrls = []url.URL{secured(p.Address)}
		}
	}
	cfg.InitialCluster, cfg.InitialClusterToken = g.initialCluster(), g.ID
	if g.Existing {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	cfg.PeerTLSInfo = g.tls()
	cfg.TickMs, cfg.ElectionMs = groupTick, groupElection
}

// tls is how members show each other who they are.
func (g *Group) tls() transport.TLSInfo {
	info := transport.TLSInfo{
		CertFile: g.CertFile, KeyFile: g.KeyFile, TrustedCAFile: g.CAFile, ClientCertAuth: true,
		// Who has a certificate of the authority that names a member is one, wherever it
		// comes from.
		SkipClientSANVerify: true,
	}
	for _, p := range g.Peers {
		info.AllowedCNs = append(info.AllowedCNs, p.Name)
	}
	return info
}

func secured(address string) url.URL { return url.URL{Scheme: "https", Host: address} }

// initialCluster lists the members in the words of etcd.
func (g *Group) initialCluster() string {
	list := make([]string, len(g.Peers))
	for i, p := range g.Peers {
		at := secured(p.Address)
		list[i] = p.Name + "=" + at.String()
	}
	return strings.Join(list, ",")
}

// ErrReplaced says that the member has lost its data and cannot come back by itself.
var ErrReplaced = errs.New(errs.Precondition,
	"its data directory is empty and the group knows it already: it would vote twice; "+
		"make it a new member with freshet cluster replace, and join with the new bundle")

// groupError says what keeps a member of a group from starting; again says that it
// is worth another try.
func groupError(dir string, err error) (again bool, _ error) {
	text := err.Error()
	switch {
	case strings.Contains(text, "has already been bootstrapped"):
		return false, ErrReplaced
	case strings.Contains(text, "could not retrieve cluster information"):
		return true, errors.New("no other member can be reached")
	case strings.Contains(text, "incompatible with current running cluster"): // also when nobody says what it runs
		return true, errors.New("a member of the group was reached, and then none said that it runs a version of " +
			"etcd that goes with this one; see that they run, all with the same version of freshet")
	case strings.Contains(text, "member count is unequal"),
		strings.Contains(text, "unmatched member while checking PeerURLs"):
		return false, errs.New(errs.Precondition, "the group has other members than members.list says, or has not "+
			"been told of this one: see freshet cluster status, and freshet cluster replace for a machine that is lost")
	}
	return false, startError(dir, err)
}

// start starts a member and returns when it belongs to a majority.
func (g *Group) start(ctx context.Context, dir string, opts Options) (_ *Member, err error) {
	p, err := g.open()
	if err != nil {
		return nil, fmt.Errorf("starting embedded etcd as member %s: %w", g.Self, err)
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	e, cfg, words, err := g.join(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	p.serve(e)
	if err = g.await(ctx, dir, e, words, opts.Log); err != nil {
		return nil, err
	}
	m := serve(e, cfg, dir, words, opts)
	m.port = p
	go func() {
		if err := <-p.ended; err != nil {
			m.fail(err)
		}
	}()
	return m, nil
}

// join starts a member's etcd, and tries again while it finds nobody to join.
func (g *Group) join(ctx context.Context, dir string, opts Options) (*embed.Etcd, *embed.Config, *lastWords, error) {
	tell := time.NewTicker(waitingEvery)
	defer tell.Stop()
	for {
		words := newLastWords()
		cfg, err := configure(dir, opts, words)
		if err != nil {
			return nil, nil, nil, err
		}
		e, err := words.start(cfg)
		if err == nil {
			return e, cfg, words, nil
		}
		again, err := groupError(dir, err)
		if !again {
			return nil, nil, nil, fmt.Errorf("starting embedded etcd as member %s: %w", g.Self, err)
		}
		g.Waiting(err.Error())
		select {
		case <-tell.C:
			opts.Log.Warn("this member has no data yet and waits for one that has; see that the others run and that "+
				"their etcd addresses can be reached",
				slog.String("member", g.Self), slog.String("error", err.Error()))
		case <-time.After(joinAgain):
		case <-ctx.Done():
			return nil, nil, nil, context.Cause(ctx)
		}
	}
}

// await returns when the member belongs to a majority.
func (g *Group) await(ctx context.Context, dir string, e *embed.Etcd, words *lastWords, log *slog.Logger) error {
	tick := time.NewTicker(waitingEvery)
	defer tick.Stop()
	g.Waiting(g.majority())
	for {
		select {
		case <-e.Server.ReadyNotify():
			return nil
		case err := <-words.said:
			return startError(dir, err)
		case <-e.Server.StopNotify():
			return fmt.Errorf("starting embedded etcd as member %s: it was removed from the group: make it a new "+
				"member with freshet cluster replace", g.Self)
		case <-tick.C:
			log.Warn("this member waits for a majority of the group; see that the others run and that their etcd "+
				"addresses can be reached",
				slog.String("member", g.Self), slog.String("needs", g.majority()))
		case <-ctx.Done():
			e.Close()
			return context.Cause(ctx)
		}
	}
}

func (g *Group) majority() string {
	return fmt.Sprintf("%d of %d members", len(g.Peers)/2+1, len(g.Peers))
}

// Leader names the member that leads; "" while there is none.
func (m *Member) Leader() string {
	leader := m.etcd.Server.Leader()
	for _, member := range m.etcd.Server.Cluster().Members() {
		if member.ID == leader {
			return member.Name
		}
	}
	return ""
}

// StepDown makes another member the leader when this one is, and says whether it was.
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
		try, cancel := context.WithTimeout(ctx, stepDownPatience)
		err = server.MoveLeader(try, uint64(self), uint64(other.ID))
		cancel()
		if err == nil {
			return true, nil
		}
	}
	return true, errs.Newf(errs.Unavailable,
		"no other member takes the lead of etcd, ask again when the others are ready: %w", err)
}

// Replace takes a lost member out of the group and puts a new one, without data, in
// its place.
func Replace(ctx context.Context, client *clientv3.Client, lost Peer) error {
	list, err := client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("asking etcd for its members: %w", err)
	}
	at := "https://" + lost.Address
	for _, member := range list.Members {
		if member.Name == "" && len(member.PeerURLs) == 1 && member.PeerURLs[0] == at {
			return nil // it is expected already
		}
		if member.Name == lost.Name {
			if _, err := client.MemberRemove(ctx, member.ID); err != nil {
				return fmt.Errorf("taking member %s out of etcd: %w", lost.Name, err)
			}
		}
	}
	// etcd wants the others to have been connected for some seconds.
	for {
		_, err := client.MemberAdd(ctx, []string{at})
		if err == nil {
			return nil
		}
		// To who is in its own process etcd says it in another way.
		again := errors.Is(err, rpctypes.ErrUnhealthy) || errors.Is(err, serrors.ErrUnhealthy)
		if !again || ctx.Err() != nil {
			return fmt.Errorf("adding the new member %s to etcd: %w", lost.Name, err)
		}
		select {
		case <-time.After(joinAgain):
		case <-ctx.Done():
		}
	}
}
