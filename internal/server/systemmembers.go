package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/surfaces/systemapi"
)

// members describes and changes the ensemble, for system administrators.
type members interface {
	Status(ctx context.Context) (*ensemble.Status, error)
	Replace(ctx context.Context, name string) error
	StepDown(ctx context.Context, name string) (*ensemble.SteppedDown, error)
}

// shardPlane describes the shards of the clusters and accepts the loss of their data.
type shardPlane interface {
	// NameOf returns organization and name of a cluster; "" if there is none with the uid.
	NameOf(uid string) string
	ShardStatus(applied map[string]map[string]uint64) []datagroup.ShardStatus
	Loss(ctx context.Context, at datagroup.ShardName, from string) (*datagroup.Loss, error)
	AcceptLoss(ctx context.Context, at datagroup.ShardName, from, token string) (*datagroup.Loss, error)
	Journals(ctx context.Context, at datagroup.ClusterName, from string) ([]datagroup.JournalReport, error)
	AcceptJournalLoss(ctx context.Context, at datagroup.ClusterName, name, from,
		token string) (*datagroup.JournalReport, error)
}

// systemMembers implements systemapi.Ensemble: it converts the status of the ensemble and of the
// shards to the types of the system API.
type systemMembers struct {
	members
	plane shardPlane
}

// Members implements systemapi.Ensemble.
func (g systemMembers) Members(ctx context.Context) (*systemapi.Members, error) {
	status, err := g.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := &systemapi.Members{
		Self: status.Self, Controller: status.Controller, EtcdLeader: status.EtcdLeader, LogLeader: status.LogLeader,
		Members: []systemapi.Member{},
	}
	for i := range status.Members {
		out.Members = append(out.Members, memberOf(&status.Members[i]))
	}
	g.addObserved(out, status.Observed)
	for _, shard := range g.plane.ShardStatus(status.Applied) {
		row := systemapi.Shard{
			Organization: shard.Organization, Cluster: shard.Cluster, Number: shard.Number,
			Owner: shard.Owner, Epoch: shard.Epoch, Log: shard.Log, Copies: []systemapi.Copy{}, Problem: shard.Problem,
		}
		for _, each := range shard.Copies {
			row.Copies = append(row.Copies,
				systemapi.Copy{Member: each.Member, Live: each.Live, Lag: each.Lag, Problem: each.Problem})
		}
		out.Shards = append(out.Shards, row)
	}
	return out, nil
}

func memberOf(s *ensemble.MemberStatus) systemapi.Member {
	m := systemapi.Member{
		Name: s.Name, Node: s.Node, Internal: s.Internal, ClockAhead: s.ClockAhead,
		CertificateEnds: s.CertificateEnds, Problem: s.Problem,
	}
	if record := s.Record; record != nil {
		m.Live, m.Ready, m.Version, m.Started = true, record.Ready, record.Version, &record.Started
		m.HTTP, m.HTTPS, m.Stream, m.StreamTLS = record.HTTP, record.HTTPS, record.Stream, record.StreamTLS
	}
	return m
}

// StepDown implements systemapi.Ensemble.
func (g systemMembers) StepDown(ctx context.Context, name string) (*systemapi.SteppedDown, error) {
	led, err := g.members.StepDown(ctx, name)
	if err != nil {
		return nil, err
	}
	return (*systemapi.SteppedDown)(led), nil
}

// Loss implements systemapi.Ensemble.
func (g systemMembers) Loss(ctx context.Context, at systemapi.ShardID, from string) (*systemapi.Loss, error) {
	loss, err := g.plane.Loss(ctx, datagroup.ShardName(at), from)
	if err != nil {
		return nil, err
	}
	return lossOf(at, loss), nil
}

// AcceptLoss implements systemapi.Ensemble.
func (g systemMembers) AcceptLoss(ctx context.Context, at systemapi.ShardID, from,
	state string,
) (*systemapi.Loss, error) {
	loss, err := g.plane.AcceptLoss(ctx, datagroup.ShardName(at), from, state)
	if err != nil {
		return nil, err
	}
	return lossOf(at, loss), nil
}

func lossOf(at systemapi.ShardID, l *datagroup.Loss) *systemapi.Loss {
	out := &systemapi.Loss{
		Organization: at.Organization, Cluster: at.Cluster, Shard: at.Number, Owner: l.Owner,
		From: l.From, State: l.Token,
		LogMessagesLost: l.LogMessages, Copies: []systemapi.LossCopy{}, Absent: l.Absent,
	}
	if l.LogExists {
		out.Log = &systemapi.LossLog{First: l.LogFirst, Last: l.LogLast}
	}
	for _, c := range l.Copies {
		out.Copies = append(out.Copies, systemapi.LossCopy{
			Member: c.Member, Position: c.Position, Epoch: c.Epoch, GivenUp: slices.Contains(l.Discard, c.Member),
			Problem: c.Problem,
		})
	}
	return out
}

// Journals implements systemapi.Ensemble.
func (g systemMembers) Journals(ctx context.Context, at systemapi.ClusterID, from string) (*systemapi.Journals, error) {
	reports, err := g.plane.Journals(ctx, datagroup.ClusterName(at), from)
	if err != nil {
		return nil, err
	}
	out := &systemapi.Journals{
		Organization: at.Organization, Cluster: at.Cluster, Journals: make([]systemapi.Journal, 0, len(reports)),
	}
	for i := range reports {
		out.Journals = append(out.Journals, *journalOf(&reports[i]))
	}
	return out, nil
}

// AcceptJournalLoss implements systemapi.Ensemble.
func (g systemMembers) AcceptJournalLoss(ctx context.Context, at systemapi.ClusterID, journal, from,
	state string,
) (*systemapi.Journal, error) {
	report, err := g.plane.AcceptJournalLoss(ctx, datagroup.ClusterName(at), journal, from, state)
	if err != nil {
		return nil, err
	}
	return journalOf(report), nil
}

func journalOf(r *datagroup.JournalReport) *systemapi.Journal {
	out := &systemapi.Journal{
		Name: r.Name, Lost: r.Lost, Needed: r.Needed, Copies: []systemapi.JournalCopy{}, From: r.From, State: r.Token,
	}
	for _, m := range r.Members {
		out.Copies = append(out.Copies, systemapi.JournalCopy{
			Member: m.Member, Position: m.Position, Sum: m.Sum, Missing: m.Missing, Problem: m.Problem,
		})
	}
	return out
}

// addObserved adds the streams and the files of the members to their description. It replaces the
// uids of clusters by names.
func (g systemMembers) addObserved(out *systemapi.Members, observed *ensemble.Observation) {
	if observed == nil {
		return
	}
	out.Observed = timeOf(observed.At)
	for i := range observed.Streams {
		out.Streams = append(out.Streams, g.logOf(&observed.Streams[i]))
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

func (g systemMembers) logOf(s *natsserver.Stream) systemapi.Stream {
	out := systemapi.Stream{
		Name: s.Name, Want: s.Want, Leader: s.Leader, Problem: s.Problem, Replicas: []systemapi.Replica{},
	}
	cluster, part, ok := natsserver.ParseStream(s.Name)
	switch {
	case ok:
		out.Cluster, out.Part = cmp.Or(g.plane.NameOf(cluster), cluster), part
	case s.Name == natsserver.MetaLayer:
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
		Compared: timeOf(p.Compared), Differs: p.Differs,
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
