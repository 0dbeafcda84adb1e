package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	// aboutTimeout is how long a member may take to tell about itself, lostTimeout one
	// that has no lease and most likely does not answer at all.
	aboutTimeout = time.Second
	lostTimeout  = 300 * time.Millisecond
	// maxSkew is how far clocks may be apart before that is called a problem: tokens
	// and leases are judged by them.
	maxSkew = time.Second
	// renewBefore is how long before its end a certificate is called a problem.
	renewBefore = 90 * 24 * time.Hour
)

// about is what a member tells the others when they ask.
type about struct {
	Time            time.Time `json:"time"`
	CertificateEnds time.Time `json:"certificateEnds"`
	LogLeader       bool      `json:"logLeader"`
	// Applied is how far its copies of shards have their logs.
	Applied map[shardKey]uint64 `json:"applied,omitempty"`
}

// shardKey names a shard: the uid of its cluster and its number.
type shardKey string

func keyOf(uid string, number int) shardKey { return shardKey(fmt.Sprint(uid, "/", number)) }

// tellAbout is what the other members call.
func (s *server) tellAbout(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(s.aboutSelf()) // the caller may be gone
}

// reach calls another member.
func (s *server) reach(ctx context.Context, member string) error {
	return s.group.network.Post(ctx, member, aboutPath, struct{}{}, nil)
}

func (s *server) aboutSelf() about {
	a := about{Time: time.Now(), CertificateEnds: s.group.credentials.Ends()}
	if log := s.group.log; log != nil {
		a.LogLeader = log.Leads()
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

// groupStatus tells system administrators about the group.
type groupStatus struct{ s *server }

// Members implements systemapi.Group.
func (g groupStatus) Members(ctx context.Context) (*systemapi.Members, error) {
	s := g.s
	if s.group == nil {
		return &systemapi.Members{Members: []systemapi.Member{}}, nil
	}
	out := &systemapi.Members{Self: s.cfg.Members.Self, Members: make([]systemapi.Member, len(s.cfg.Members.List))}
	var err error
	if out.Controller, err = s.group.members.Controller(ctx); err != nil {
		return nil, errs.Newf(errs.Unavailable, "asking etcd who runs the controllers: %w", err)
	}
	if s.member != nil {
		out.EtcdLeader = s.member.Leader()
	}
	var asked sync.WaitGroup
	told := make([]about, len(out.Members))
	for i, m := range s.cfg.Members.List {
		asked.Go(func() { out.Members[i], told[i] = g.member(ctx, m, i+1) })
	}
	asked.Wait()
	applied := map[string]map[shardKey]uint64{}
	for i := range told {
		name := out.Members[i].Name
		if applied[name] = told[i].Applied; told[i].LogLeader {
			out.LogLeader = name
		}
	}
	out.Shards = g.shards(applied)
	return out, nil
}

// shards describes those of all clusters that run here. How far a copy is behind its log
// is known from what its member has just told; of one that does not answer, from what it
// last wrote down.
func (g groupStatus) shards(applied map[string]map[shardKey]uint64) (list []systemapi.Shard) {
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
				if position, told := applied[each.Member][key]; told {
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

// member describes one, which is asked unless it is this one.
func (g groupStatus) member(ctx context.Context, of config.Member, node int) (m systemapi.Member, told about) {
	m = systemapi.Member{Name: of.Name, Node: node, Internal: of.Internal}
	if record, ok := g.s.group.members.Find(of.Name); ok {
		m.Live, m.Ready, m.Version, m.Started = true, record.Ready, record.Version, &record.Started
		m.HTTP, m.HTTPS, m.Stream, m.StreamTLS = record.HTTP, record.HTTPS, record.Stream, record.StreamTLS
	} else {
		m.Problem = "it has no lease: it is stopped, or does not reach a majority"
	}
	if of.Name == g.s.cfg.Members.Self {
		told = g.s.aboutSelf()
	} else {
		patience := aboutTimeout
		if !m.Live {
			patience = lostTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		began := time.Now()
		if err := g.s.group.network.Post(ctx, of.Name, aboutPath, struct{}{}, &told); err != nil {
			if m.Live {
				m.Problem = "it does not answer this member: " + err.Error()
			}
			return m, about{}
		}
		m.ClockAhead = told.Time.Sub(began.Add(time.Since(began) / 2)).Round(time.Millisecond).Seconds()
	}
	m.CertificateEnds = &told.CertificateEnds
	switch skew := time.Duration(m.ClockAhead * float64(time.Second)); {
	case m.Problem != "":
	case skew > maxSkew || skew < -maxSkew:
		m.Problem = "its clock and that of this member are " + skew.Abs().String() + " apart; have both set by NTP"
	case time.Until(told.CertificateEnds) < renewBefore:
		m.Problem = "its certificate ends on " + told.CertificateEnds.Format(time.DateOnly) +
			"; see freshet cluster replace"
	case !m.Ready:
		m.Problem = "it is starting or stopping"
	}
	return m, told
}

var (
	errAlone  = errs.New(errs.NotFound, "this server is alone: its configuration has no members")
	errIsLive = errs.New(errs.Conflict, "the member is live; stop it first, or it would be cut off")
	errNoPart = errs.New(errs.Precondition,
		"etcd is external and has no part of this member: start the new machine with its bundle")
)

// Replace implements systemapi.Group.
func (g groupStatus) Replace(ctx context.Context, name string) error {
	s := g.s
	if s.group == nil {
		return errAlone
	}
	for _, m := range s.cfg.Members.List {
		if m.Name != name {
			continue
		}
		if _, live := s.group.members.Find(name); live {
			return errIsLive
		}
		if s.cfg.Etcd.External() {
			return errNoPart
		}
		s.log.Warn("a member is replaced by an empty one", "member", name)
		return etcd.Replace(ctx, s.etcd, etcd.Peer{Name: name, Address: m.Etcd})
	}
	return errs.Newf(errs.NotFound, "there is no member %q in members.list", name)
}
