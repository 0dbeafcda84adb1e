package server

import (
	"context"

	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/surfaces/systemapi"
)

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
