package server

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"freshet/internal/ensemble"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/surfaces/systemapi"
)

// addObserved adds the streams and the files of the members to their description. It replaces the
// uids of clusters by names.
func (g systemMembers) addObserved(out *systemapi.Members, observed *ensemble.Observation) {
	if observed == nil {
		return
	}
	out.Observed = timeOf(observed.At)
	for i := range observed.Streams {
		out.Streams = append(out.Streams, g.streamOf(&observed.Streams[i]))
	}
	slices.SortStableFunc(out.Streams, func(a, b systemapi.Stream) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for i := range out.Members {
		m := &out.Members[i]
		health := observed.Members[m.Name]
		if health == nil {
			continue
		}
		m.QuarantineBytes = health.QuarantineBytes
		for j := range health.Parts {
			m.Parts = append(m.Parts, g.partOf(&health.Parts[j]))
		}
		for uid, failing := range observed.Failing {
			if why := failing[m.Name]; why != "" {
				if m.Failing == nil {
					m.Failing = map[string]string{}
				}
				m.Failing[cmp.Or(g.plane.NameOf(uid), uid)] = why
			}
		}
	}
}

func (g systemMembers) streamOf(s *natsserver.Stream) systemapi.Stream {
	out := systemapi.Stream{
		Name: s.Name, Want: s.Want, Leader: s.Leader, Problem: s.Problem, Replicas: []systemapi.Replica{},
	}
	cluster, part, ok := natsserver.ParseStream(s.Name)
	switch {
	case ok:
		out.Cluster, out.Part = cmp.Or(g.plane.NameOf(cluster), cluster), part
	case s.Name == natsserver.MetaGroup:
		out.Part = "meta layer"
	default:
		out.Part = "stream " + s.Name
	}
	for _, r := range s.Replicas {
		out.Replicas = append(out.Replicas, systemapi.Replica{
			Member: r.Server, Current: r.Current, Lag: r.Lag, Since: timeOf(r.Since), Problem: r.Problem,
		})
	}
	return out
}

func (g systemMembers) partOf(p *integrity.Part) systemapi.Part {
	out := systemapi.Part{
		Name: p.Name, Verified: timeOf(p.Verified), Damaged: timeOf(p.Damaged), Healed: timeOf(p.Healed),
		Damages: p.Damages, File: p.File, Problem: p.Problem,
	}
	if kind, rest, ok := strings.Cut(p.Name, " "); ok {
		if uid, of, ok := strings.Cut(rest, "/"); ok {
			out.Name = kind + " " + cmp.Or(g.plane.NameOf(uid), uid) + "/" + of
		}
	}
	return out
}

// timeOf returns nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Truncate(time.Second))
}
