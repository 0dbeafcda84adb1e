package ensemble

import (
	"maps"
	"slices"
	"strings"

	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/natsserver"
)

// Replication describes how safely the members store the data of a cluster.
func (p *Plane) Replication(uid string) provision.Replication {
	return ReplicationOf(p.ensemble.opts.Membership.Observation(), p.ensemble.opts.Members, uid)
}

// ReplicationOf picks out of an observation what concerns a cluster: its own streams and parts, and
// the meta layer and the directory of all logs, on which every cluster depends.
func ReplicationOf(observed *ensemble.Observation, members []string, uid string) provision.Replication {
	if observed == nil {
		return provision.Replication{}
	}
	r := provision.Replication{Known: true, Failing: slices.Sorted(maps.Keys(observed.Failing[uid]))}
	for i := range observed.Streams {
		s := &observed.Streams[i]
		cluster, part, _ := natsserver.ParseStream(s.Name)
		switch {
		case s.Name == natsserver.MetaLayer:
			part = "meta layer of the log"
		case cluster != uid:
			continue
		}
		r.Streams++
		r.Replicas = max(r.Replicas, s.Want)
		if s.Problem != "" {
			r.NoMajority = append(r.NoMajority, part)
		}
		for _, replica := range s.Missing() {
			r.Missing = append(r.Missing, part+" on member "+replica.Server)
		}
	}
	for _, member := range members {
		health := observed.Members[member]
		if health == nil {
			continue
		}
		for i := range health.Parts {
			part := &health.Parts[i]
			name, ok := partOf(part.Name, uid)
			if ok && !part.Damaged.IsZero() {
				r.Damaged = append(r.Damaged, name+" on member "+member)
			}
			if ok && part.Differs != "" {
				r.Differing = append(r.Differing, name+" on member "+member)
			}
		}
	}
	return r
}

// partOf returns the name of a part without the uid of its cluster, and whether the part concerns
// the cluster (package integrity has the names).
func partOf(part, uid string) (name string, ok bool) {
	kind, rest, ofCluster := strings.Cut(part, " ")
	if !ofCluster {
		return part, true // of all clusters
	}
	name, ok = strings.CutPrefix(rest, uid+"/")
	return kind + " " + name, ok
}
