package ensemble

import (
	"context"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/replicated"
)

// Loss describes what is lost when a shard continues whose copies and log do not match.
type Loss = replicated.Loss

// ShardName names a shard by organization, cluster and number.
type ShardName struct {
	Organization, Cluster string
	Number                int
}

// Loss returns what would be lost if a shard continued whose copies and log do not match.
func (p *Plane) Loss(ctx context.Context, at ShardName, from string) (*Loss, error) {
	s, err := p.findShard(at)
	if err != nil {
		return nil, err
	}
	return s.Loss(ctx, from)
}

// AcceptLoss makes the shard continue as Loss described it.
func (p *Plane) AcceptLoss(ctx context.Context, at ShardName, from, token string) (*Loss, error) {
	s, err := p.findShard(at)
	if err != nil {
		return nil, err
	}
	return s.Accept(ctx, from, token)
}

func (p *Plane) findShard(at ShardName) (*replicated.Shard, error) {
	c, err := p.FindNamed(at.Organization, at.Cluster)
	if err != nil {
		return nil, err
	}
	p.ensemble.mu.Lock()
	defer p.ensemble.mu.Unlock()
	if s := p.ensemble.openShards[shardKey{c.UID, at.Number}]; s != nil {
		return s, nil
	}
	return nil, errs.Newf(errs.NotFound, "shard %d of the cluster does not exist or is not open on this member",
		at.Number)
}
