package membership

import (
	"context"
	"time"

	"freshet/internal/base/retry"
)

const startedPollInterval = 100 * time.Millisecond

// MarkStarted records in etcd that the first start of the ensemble is done.
func (g *Ensemble) MarkStarted(ctx context.Context) error {
	_, err := g.opts.Etcd.Put(ctx, g.key("started"), g.opts.Self.Name)
	return err
}

// AwaitStarted waits until a member has done the first start of the ensemble.
func (g *Ensemble) AwaitStarted(ctx context.Context) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		found, err := g.opts.Etcd.Get(attempt, g.key("started"))
		cancel()
		if err == nil && len(found.Kvs) > 0 {
			return nil
		}
		if err := retry.Sleep(ctx, startedPollInterval); err != nil {
			return err
		}
	}
}
