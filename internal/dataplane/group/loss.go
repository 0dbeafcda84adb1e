package group

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/replicated"
)

// Loss is what is lost when a shard goes on whose copies and log do not fit together.
type Loss = replicated.Loss

// Loss looks at a shard of a cluster whose copies and log do not fit together.
func (p *Plane) Loss(ctx context.Context, uid string, number int, from string) (*Loss, error) {
	s, err := p.group.find(uid, number)
	if err != nil {
		return nil, err
	}
	return s.Loss(ctx, from)
}

// AcceptLoss has the shard go on as was looked at.
func (p *Plane) AcceptLoss(ctx context.Context, uid string, number int, from, mark string) (*Loss, error) {
	s, err := p.group.find(uid, number)
	if err != nil {
		return nil, err
	}
	return s.Accept(ctx, from, mark)
}

func (g *Group) find(uid string, number int) (*replicated.Shard, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.open[shardKey{uid, number}]; s != nil {
		return s, nil
	}
	return nil, errs.Newf(errs.NotFound, "the cluster has no shard %d, or it is not open on this member", number)
}
