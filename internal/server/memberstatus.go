package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/surfaces/systemapi"
)

const (
	aboutPath = "/v1/about"
	// aboutTimeout is the timeout for the status of a member, noLeaseTimeout that for a member
	// without a lease, which probably does not respond.
	aboutTimeout   = time.Second
	noLeaseTimeout = 300 * time.Millisecond
	// maxSkew is the clock difference from which the status reports a problem. Tokens and
	// leases depend on the clocks.
	maxSkew = time.Second
	// renewBefore is the remaining lifetime of a certificate below which the status reports
	// a problem.
	renewBefore = 90 * 24 * time.Hour
)

// memberAbout is the status that a member returns to other members.
type memberAbout struct {
	Time            time.Time `json:"time"`
	CertificateEnds time.Time `json:"certificateEnds"`
	LogLeader       bool      `json:"logLeader"`
	// Applied contains the last applied position of the member's copy of each shard.
	Applied map[shardKey]uint64 `json:"applied,omitempty"`
}

// shardKey identifies a shard: the uid of its cluster and its number.
type shardKey string

func keyOf(uid string, number int) shardKey { return shardKey(fmt.Sprint(uid, "/", number)) }

// serveAbout handles the status request of another member.
func (s *server) serveAbout(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(s.aboutSelf()) // fails only if the caller disconnected
}

// pingMember checks whether another member responds.
func (s *server) pingMember(ctx context.Context, member string) error {
	return s.ensemble.network.Post(ctx, member, aboutPath, struct{}{}, nil)
}

func (s *server) aboutSelf() memberAbout {
	a := memberAbout{Time: time.Now(), CertificateEnds: s.ensemble.credentials.Expiry()}
	if log := s.ensemble.log; log != nil {
		a.LogLeader = log.IsMetaLeader()
	}
	if s.plane == nil {
		return a
	}
	a.Applied = map[shardKey]uint64{}
	for _, c := range s.plane.Clusters() {
		for _, shard := range s.plane.Shards(c.UID) {
			for _, each := range shard.Copies {
				if each.Member == s.cfg.Members.Self {
					a.Applied[keyOf(c.UID, shard.Number)] = shard.Log - min(shard.Log, each.Lag)
				}
			}
		}
	}
	return a
}

// ensembleStatus implements systemapi.Ensemble: the status of the ensemble for system
// administrators.
type ensembleStatus struct{ s *server }

// Members implements systemapi.Ensemble.
func (g ensembleStatus) Members(ctx context.Context) (*systemapi.Members, error) {
	s := g.s
	if s.ensemble == nil {
		return &systemapi.Members{Members: []systemapi.Member{}}, nil
	}
	out := &systemapi.Members{Self: s.cfg.Members.Self, Members: make([]systemapi.Member, len(s.cfg.Members.List))}
	var err error
	if out.Controller, err = s.ensemble.members.Controller(ctx); err != nil {
		return nil, errs.Newf(errs.Unavailable, "reading from etcd which member runs the controllers: %w", err)
	}
	if s.member != nil {
		out.EtcdLeader = s.member.Leader()
	}
	var asked sync.WaitGroup
	reported := make([]memberAbout, len(out.Members))
	for i, m := range s.cfg.Members.List {
		asked.Go(func() { out.Members[i], reported[i] = g.member(ctx, m, i+1) })
	}
	asked.Wait()
	applied := map[string]map[shardKey]uint64{}
	for i := range reported {
		name := out.Members[i].Name
		if applied[name] = reported[i].Applied; reported[i].LogLeader {
			out.LogLeader = name
		}
	}
	out.Shards = g.shards(applied)
	return out, nil
}

// shards returns the shards of all clusters on this member. The lag of a copy comes from the
// status that its member has just returned, or, if the member did not respond, from the
// position that it last stored.
func (g ensembleStatus) shards(applied map[string]map[shardKey]uint64) (list []systemapi.Shard) {
	if g.s.plane == nil {
		return nil
	}
	for _, c := range g.s.plane.Clusters() {
		for _, s := range g.s.plane.Shards(c.UID) {
			out := systemapi.Shard{
				Organization: c.Organization, Cluster: c.Name, Number: s.Number,
				Owner: s.Owner, Epoch: s.Epoch, Log: s.Log, Copies: []systemapi.Copy{}, Problem: s.Problem,
			}
			key := keyOf(c.UID, s.Number)
			for _, each := range applied {
				out.Log = max(out.Log, each[key])
			}
			for _, each := range s.Copies {
				lag := each.Lag + out.Log - s.Log
				if position, reported := applied[each.Member][key]; reported {
					lag = out.Log - position
				}
				out.Copies = append(out.Copies,
					systemapi.Copy{Member: each.Member, Live: each.Live, Lag: lag, Problem: each.Problem})
			}
			list = append(list, out)
		}
	}
	slices.SortFunc(list, func(a, b systemapi.Shard) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Number, b.Number))
	})
	return list
}

// member returns the status of one member. It requests the status from the member, unless it
// is this one.
func (g ensembleStatus) member(ctx context.Context, of config.Member,
	node int,
) (m systemapi.Member, reported memberAbout) {
	m = systemapi.Member{Name: of.Name, Node: node, Internal: of.Internal}
	if record, ok := g.s.ensemble.members.Find(of.Name); ok {
		m.Live, m.Ready, m.Version, m.Started = true, record.Ready, record.Version, &record.Started
		m.HTTP, m.HTTPS, m.Stream, m.StreamTLS = record.HTTP, record.HTTPS, record.Stream, record.StreamTLS
	} else {
		m.Problem = "it has no lease: it is stopped, or does not reach a majority"
	}
	if of.Name == g.s.cfg.Members.Self {
		reported = g.s.aboutSelf()
	} else {
		timeout := aboutTimeout
		if !m.Live {
			timeout = noLeaseTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		began := time.Now()
		if err := g.s.ensemble.network.Post(ctx, of.Name, aboutPath, struct{}{}, &reported); err != nil {
			if m.Live {
				m.Problem = "it does not respond to this member: " + err.Error()
			}
			return m, memberAbout{}
		}
		m.ClockAhead = reported.Time.Sub(began.Add(time.Since(began) / 2)).Round(time.Millisecond).Seconds()
	}
	m.CertificateEnds = &reported.CertificateEnds
	switch skew := time.Duration(m.ClockAhead * float64(time.Second)); {
	case m.Problem != "":
	case skew > maxSkew || skew < -maxSkew:
		m.Problem = "its clock and that of this member are " + skew.Abs().String() + " apart; synchronize both with NTP"
	case time.Until(reported.CertificateEnds) < renewBefore:
		m.Problem = "its certificate expires on " + reported.CertificateEnds.Format(time.DateOnly) +
			"; see freshet ensemble replace"
	case !m.Ready:
		m.Problem = "it is starting or stopping"
	}
	return m, reported
}

var (
	errAlone = errs.New(errs.NotFound,
		"this server is not part of an ensemble; its configuration has no members")
	errIsLive       = errs.New(errs.Conflict, "member is live; stop it first")
	errExternalEtcd = errs.New(errs.Precondition,
		"etcd is external, so nothing has to be replaced; start the new machine with its bundle")
)

// Replace implements systemapi.Ensemble.
func (g ensembleStatus) Replace(ctx context.Context, name string) error {
	s := g.s
	if s.ensemble == nil {
		return errAlone
	}
	for _, m := range s.cfg.Members.List {
		if m.Name != name {
			continue
		}
		if _, live := s.ensemble.members.Find(name); live {
			return errIsLive
		}
		if s.cfg.Etcd.External() {
			return errExternalEtcd
		}
		s.log.Warn("replacing a member with an empty one", slog.String("member", name))
		return etcd.ReplaceMember(ctx, s.etcd, etcd.Peer{Name: name, Address: m.Etcd})
	}
	return errs.Newf(errs.NotFound, "member %q is not in members.list", name)
}
