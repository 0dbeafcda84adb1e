package natsserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ReplicaGrace is how long a replica may be behind or absent before it counts as missing. A new
// stream, a new leader and a restarted server need a moment to catch up. A replica on a server that
// is down counts as missing at once.
const ReplicaGrace = 30 * time.Second

// Stream is a stream of the log, or its meta layer (MetaLayer), with its replicas on all servers.
type Stream struct {
	Name     string    `json:"name"`
	Want     int       `json:"want"` // replicas that it should have
	Leader   string    `json:"leader,omitempty"`
	Replicas []Replica `json:"replicas"`
	// Problem is set when the stream has no leader, or fewer current replicas than a majority, so
	// that it accepts nothing.
	Problem string `json:"problem,omitempty"`
}

// Replica is a server's replica of a stream.
type Replica struct {
	Server  string `json:"server"`
	Current bool   `json:"current"`
	Lag     uint64 `json:"lag"` // entries of the Raft log that it does not have, as the leader sees it
	// Since is when the replica stopped being current; zero while it is.
	Since time.Time `json:"since,omitzero"`
	// Problem is why the replica counts as missing; "" while it is current, or not current for less
	// than ReplicaGrace.
	Problem string `json:"problem,omitempty"`
}

// Missing returns the replicas that count as missing.
func (s *Stream) Missing() []Replica {
	var missing []Replica
	for _, r := range s.Replicas {
		if r.Problem != "" {
			missing = append(missing, r)
		}
	}
	return missing
}

// Tracker combines the reports of all servers, and remembers since when replicas are not current.
// It is not safe for concurrent use.
type Tracker struct {
	// Servers are the servers of the log; nil if they are external, and the report names them.
	Servers []string
	Grace   time.Duration
	Now     func() time.Time

	since map[string]time.Time // by stream, and by stream, server and whether the server is down
}

// view is what the reports of all servers contain about one stream.
type view struct {
	want   int
	leader string                 // the server that reports to lead it, or that others name
	peers  map[string]Peer        // reported by the leader; nil without such a report
	own    map[string]LocalStream // by server
}

// round is one call of Combine.
type round struct {
	*Tracker
	reports map[string]*Report
	down    map[string]bool
	before  map[string]time.Time // Tracker.since of the last call
}

// Combine returns the streams that the reports name, the meta layer first. A server without a
// report did not respond. Servers in down are known not to run.
func (t *Tracker) Combine(reports map[string]*Report, down map[string]bool) []Stream {
	views := map[string]*view{}
	for _, from := range slices.Sorted(maps.Keys(reports)) {
		for _, g := range reports[from].Streams {
			v := views[g.Name]
			if v == nil {
				v = &view{own: map[string]LocalStream{}}
				views[g.Name] = v
			}
			v.add(from, g)
		}
	}
	round := &round{Tracker: t, reports: reports, down: down, before: t.since}
	t.since = map[string]time.Time{}
	streams := make([]Stream, 0, len(views))
	for _, name := range slices.Sorted(maps.Keys(views)) {
		streams = append(streams, round.stream(name, views[name]))
	}
	slices.SortStableFunc(streams, func(a, b Stream) int {
		return cmp.Compare(b2i(a.Name != MetaLayer), b2i(b.Name != MetaLayer))
	})
	return streams
}

func (v *view) add(from string, g LocalStream) {
	v.own[from] = g
	v.want = max(v.want, g.Want)
	switch {
	// The leader itself; of two, the one that has more current replicas.
	case g.Leader == from && from != "" && g.Problem == "", g.Peers != nil:
		peers := map[string]Peer{}
		for _, p := range g.Peers {
			peers[p.Server] = p
		}
		if v.peers == nil || current(peers) > current(v.peers) {
			v.leader, v.peers = g.Leader, peers
		}
	case v.peers == nil && g.Leader != "":
		v.leader = g.Leader
	}
}

func current(peers map[string]Peer) (n int) {
	for _, p := range peers {
		n += b2i(p.Current && !p.Offline)
	}
	return n
}

// stream describes one stream.
func (t *round) stream(name string, v *view) Stream {
	s := Stream{Name: name, Want: v.want, Leader: v.leader}
	good := 0
	for _, server := range t.servers(v) {
		r := t.replica(name, server, v)
		good += b2i(r.Current)
		s.Replicas = append(s.Replicas, r)
	}
	if s.Want == 0 { // only servers that could not create it know it
		s.Want = len(s.Replicas)
	}
	var why string
	switch {
	case v.leader == "":
		why = "it has no leader, so it accepts nothing"
	case v.peers != nil && 2*good <= s.Want:
		why = fmt.Sprintf("only %d of %d replicas are current, which is no majority, so it accepts nothing",
			good, s.Want)
	}
	if why != "" && t.lasts(name) {
		s.Problem = why
	}
	return s
}

// servers returns the servers that should have a replica: all, if the stream has as many replicas
// as there are servers, otherwise those that the leader names or that have one.
func (t *Tracker) servers(v *view) []string {
	if len(t.Servers) > 0 && (v.want == 0 || v.want >= len(t.Servers)) {
		return t.Servers
	}
	names := map[string]bool{}
	if v.leader != "" {
		names[v.leader] = true
	}
	for name := range v.peers {
		names[name] = true
	}
	if len(t.Servers) > 0 {
		for name := range v.own {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// replica describes the replica of one server.
func (t *round) replica(stream, server string, v *view) Replica {
	r := Replica{Server: server}
	peer, isPeer := v.peers[server]
	r.Lag = peer.Lag
	own, holds := v.own[server]
	_, responded := t.reports[server]
	external := len(t.Servers) == 0
	// Of external servers only the leader knows whether they run.
	down := t.down[server] || external && peer.Offline
	var why string
	switch {
	case down:
		why = "its server is down, or the others do not reach it"
	case !external && !responded:
		why = "its server does not respond"
	case own.Problem != "":
		why = own.Problem
	case !external && !holds:
		why = "its server does not have it"
	case server == v.leader: // its own report is the proof that it works
	case v.peers == nil:
		why = "unknown, because the leader of the stream has not reported"
	case !isPeer:
		why = "the leader does not know it"
	case peer.Offline:
		why = "the leader does not reach it"
	case !peer.Current:
		why = fmt.Sprintf("it is %d entries behind and does not catch up", peer.Lag)
	}
	if why == "" {
		r.Current = true
		return r
	}
	// A server that runs again gets the whole grace time to catch up.
	key := fmt.Sprint(stream, " ", server, " ", down)
	lasts := t.lasts(key)
	if r.Since = t.since[key]; lasts || down {
		r.Problem = why
	}
	return r
}

// lasts reports whether something has been wrong for longer than the grace time, and remembers that
// it is.
func (t *round) lasts(key string) bool {
	since, ok := t.before[key]
	if !ok {
		since = t.Now()
	}
	t.since[key] = since
	return t.Now().Sub(since) >= t.Grace
}

// ParseStream returns the uid of the cluster of a stream, and which part of the cluster the stream
// stores. ok is false for a stream that belongs to no cluster.
func ParseStream(name string) (cluster, part string, ok bool) {
	switch {
	case strings.HasPrefix(name, "S_"):
		i := strings.LastIndexByte(name, '_')
		if i <= len("S_") {
			return "", "", false
		}
		shard, _, _ := strings.Cut(name[i+1:], "-") // the rest identifies a log that has replaced another one
		return name[len("S_"):i], "log of shard " + shard, true
	case strings.HasPrefix(name, "J_"):
		cluster, journal, _ := strings.Cut(name[len("J_"):], "_")
		if journal == "" {
			return cluster, "snapshots of the journals", true
		}
		return cluster, "journal " + journal, true
	}
	return "", "", false
}
