package server

import (
	"context"
	"slices"

	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/surfaces/systemapi"
)

// Loss implements systemapi.Ensemble.
func (g ensembleStatus) Loss(ctx context.Context, at systemapi.ShardID, from string) (*systemapi.Loss, error) {
	uid, err := g.clusterAt(at)
	if err != nil {
		return nil, err
	}
	loss, err := g.s.ensemble.plane.Loss(ctx, uid, at.Number, from)
	if err != nil {
		return nil, err
	}
	return lossOf(at, loss), nil
}

// AcceptLoss implements systemapi.Ensemble.
func (g ensembleStatus) AcceptLoss(ctx context.Context, at systemapi.ShardID, from,
	mark string,
) (*systemapi.Loss, error) {
	uid, err := g.clusterAt(at)
	if err != nil {
		return nil, err
	}
	loss, err := g.s.ensemble.plane.AcceptLoss(ctx, uid, at.Number, from, mark)
	if err != nil {
		return nil, err
	}
	return lossOf(at, loss), nil
}

// clusterAt returns the UID of a shard's cluster.
func (g ensembleStatus) clusterAt(at systemapi.ShardID) (string, error) {
	if g.s.ensemble == nil {
		return "", errAlone
	}
	c, err := g.s.plane.FindNamed(at.Organization, at.Cluster)
	if err != nil {
		return "", err
	}
	return c.UID, nil
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
