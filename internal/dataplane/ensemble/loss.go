package ensemble

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/replicated"
)

// Loss describes what is lost when a shard continues whose copies and log do not match.
type Loss = replicated.Loss

// Loss returns what would be lost if a shard continued whose copies and log do not match.
func (p *Plane) Loss(ctx context.Context, uid string, number int, from string) (*Loss, error) {
	s, err := p.ensemble.findShard(uid, number)
	if err != nil {
		return nil, err
	}
	return s.Loss(ctx, from)
}

// AcceptLoss makes the shard continue as Loss described it.
func (p *Plane) AcceptLoss(ctx context.Context, uid string, number int, from, token string) (*Loss, error) {
	s, err := p.ensemble.findShard(uid, number)
	if err != nil {
		return nil, err
	}
	return s.Accept(ctx, from, token)
}

func (g *Ensemble) findShard(uid string, number int) (*replicated.Shard, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.openShards[shardKey{uid, number}]; s != nil {
		return s, nil
	}
	return nil, errs.Newf(errs.NotFound, "shard %d of the cluster does not exist or is not open on this member", number)
}
