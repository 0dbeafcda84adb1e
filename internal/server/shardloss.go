package server

import (
	"context"
	"slices"

	datagroup "freshet/internal/dataplane/group"
	"freshet/internal/surfaces/systemapi"
)

// Loss implements systemapi.Group.
func (g groupStatus) Loss(ctx context.Context, at systemapi.ShardAt, from string) (*systemapi.Loss, error) {
	uid, err := g.clusterAt(at)
	if err != nil {
		return nil, err
	}
	loss, err := g.s.group.plane.Loss(ctx, uid, at.Number, from)
	if err != nil {
		return nil, err
	}
	return lossOf(at, loss), nil
}

// AcceptLoss implements systemapi.Group.
func (g groupStatus) AcceptLoss(ctx context.Context, at systemapi.ShardAt, from, mark string) (*systemapi.Loss, error) {
	uid, err := g.clusterAt(at)
	if err != nil {
		return nil, err
	}
	loss, err := g.s.group.plane.AcceptLoss(ctx, uid, at.Number, from, mark)
	if err != nil {
		return nil, err
	}
	return lossOf(at, loss), nil
}

// clusterAt returns the UID of a shard's cluster.
func (g groupStatus) clusterAt(at systemapi.ShardAt) (string, error) {
	if g.s.group == nil {
		return "", errAlone
	}
	c, err := g.s.plane.FindNamed(at.Organization, at.Cluster)
	if err != nil {
		return "", err
	}
	return c.UID, nil
}

func lossOf(at systemapi.ShardAt, l *datagroup.Loss) *systemapi.Loss {
	out := &systemapi.Loss{
		Organization: at.Organization, Cluster: at.Cluster, Shard: at.Number, Owner: l.Owner,
		From: l.From, Mark: l.Mark,
		LogMessagesLost: l.LogMessages, Copies: []systemapi.LossCopy{}, Absent: l.Absent,
	}
	if l.LogThere {
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
