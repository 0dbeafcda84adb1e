package natsserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// MetaLayer is the name of the meta layer in reports. The meta layer is the Raft group of all
// servers that decides which server stores which stream.
const MetaLayer = "_meta_"

// Report is what one server knows about the Raft groups of the log: the meta layer and the streams
// that it stores or should store. External servers give one report for all of them.
type Report struct {
	Server  string        `json:"server"`
	Streams []LocalStream `json:"streams"` // the meta layer first, then the streams in the order of their names
}

// LocalStream is a stream, or the meta layer, as one server sees it.
type LocalStream struct {
	Name string `json:"name"`
	// Want is the number of replicas that the group should have; 0 if the server does not know it.
	Want int `json:"want"`
	// Leader is the server that leads the group; "" while this server knows none.
	Leader string `json:"leader,omitempty"`
	// Problem is why this server's own replica does not take part; "" if it does.
	Problem string `json:"problem,omitempty"`
	// Peers are the other replicas. Only the leader reports them, because only the leader knows how
	// far they are.
	Peers []Peer `json:"peers,omitempty"`
}

// Peer is a replica as the leader of its group sees it.
type Peer struct {
	Server  string `json:"server"`
	Current bool   `json:"current,omitempty"`
	Offline bool   `json:"offline,omitempty"`
	Lag     uint64 `json:"lag,omitempty"` // entries of the Raft log
}

// Report implements Log. It reads only the state of this server.
func (s *Server) Report(context.Context) (*Report, error) {
	ns := s.nats.Load()
	info, err := ns.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Config: true})
	if err != nil {
		return nil, fmt.Errorf("reading the streams of the embedded NATS server: %w", err)
	}
	if info.Meta == nil {
		return &Report{Server: s.opts.Name}, nil // a single server, whose streams have no replicas
	}
	groups := map[string]*LocalStream{MetaLayer: {
		Name: MetaLayer, Want: len(s.opts.Routes) + 1, Leader: info.Meta.Leader,
		Peers: s.peersIfLeader(info.Meta.Leader, info.Meta.Replicas),
	}}
	for _, account := range info.AccountDetails {
		for i := range account.Streams {
			g := s.describe(&account.Streams[i])
			groups[g.Name] = g
		}
	}
	// The health check also finds streams that this server should store and could not create.
	health := ns.Healthz(&server.HealthzOptions{Details: true})
	for _, e := range health.Errors {
		name := e.Stream
		switch e.Type {
		case server.HealthzErrorStream:
		case server.HealthzErrorJetStream:
			name = MetaLayer
		default:
			continue // of a consumer, which stores nothing, or of the whole server
		}
		if groups[name] == nil {
			groups[name] = &LocalStream{Name: name}
		}
		groups[name].Problem = problemOf(&e)
	}
	report := &Report{Server: s.opts.Name}
	for _, g := range groups {
		report.Streams = append(report.Streams, *g)
	}
	sortStreams(report.Streams)
	return report, nil
}

// problemOf returns the text of an error without the name of the stream, which stands beside it.
func problemOf(e *server.HealthzError) string {
	if _, text, ok := strings.Cut(e.Error, "' "); ok && e.Stream != "" {
		return strings.TrimPrefix(text, "is not current: ")
	}
	return e.Error
}

// sortStreams sorts the meta layer first, then by name.
func sortStreams(groups []LocalStream) {
	slices.SortFunc(groups, func(a, b LocalStream) int {
		if a.Name == MetaLayer || b.Name == MetaLayer {
			return cmp.Compare(b2i(a.Name != MetaLayer), b2i(b.Name != MetaLayer))
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// describe describes a stream that this server stores.
func (s *Server) describe(stream *server.StreamDetail) *LocalStream {
	g := &LocalStream{Name: stream.Name, Want: 1}
	if stream.Config != nil {
		g.Want = max(stream.Config.Replicas, 1)
	}
	switch c := stream.Cluster; {
	case c == nil, c.RaftGroup == "" && g.Want == 1:
		g.Leader = s.opts.Name
	case c.RaftGroup == "":
		// nats-server names itself as the leader of a stream whose Raft group does not run.
		g.Problem = "its Raft group does not run"
	default:
		g.Leader, g.Peers = c.Leader, s.peersIfLeader(c.Leader, c.Replicas)
	}
	return g
}

// peersIfLeader returns the other replicas of a group that this server leads, and nil for other
// groups.
func (s *Server) peersIfLeader(leader string, infos []*server.PeerInfo) []Peer {
	if leader != s.opts.Name {
		return nil
	}
	peers := []Peer{}
	for _, p := range infos {
		if p.Name != s.opts.Name {
			peers = append(peers,
				Peer{Server: p.Name, Current: p.Current && !p.Pending, Offline: p.Offline, Lag: p.Lag})
		}
	}
	return peers
}

// prefixes are those of the names of Freshet's streams: logs of shards, and journals with their
// snapshots. An account of external servers can have other streams.
var prefixes = []string{"S_", "J_"}

// Report implements Log. It lists Freshet's streams with the JetStream API, in which each leader
// reports the replicas of its streams. The API does not report the meta layer.
func (r *Remote) Report(ctx context.Context) (*Report, error) {
	js, err := jetstream.New(r.conn)
	if err != nil {
		return nil, fmt.Errorf("listing the streams of the external NATS servers: %w", err)
	}
	report := &Report{}
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		name := info.Config.Name
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		g := LocalStream{Name: name, Want: max(info.Config.Replicas, 1), Peers: []Peer{}}
		if c := info.Cluster; c == nil {
			g.Leader = r.conn.ConnectedServerName() // a single server
		} else {
			g.Leader = c.Leader
			for _, p := range c.Replicas {
				g.Peers = append(g.Peers, Peer{Server: p.Name, Current: p.Current, Offline: p.Offline, Lag: p.Lag})
			}
		}
		report.Streams = append(report.Streams, g)
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("listing the streams of the external NATS servers: %w", err)
	}
	sortStreams(report.Streams)
	return report, nil
}
