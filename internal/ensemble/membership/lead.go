package membership

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lead campaigns for the leadership of the ensemble and runs work while this member leads.
// work returns when its context ends; when it returns earlier, another member may take over.
// Lead returns when the context ends and work has returned, and resigns immediately.
func (g *Ensemble) Lead(ctx context.Context, work func(ctx context.Context)) {
	for ctx.Err() == nil {
		session := g.Session()
		if session == nil || !g.Alive() {
			_ = g.Changed(ctx) // the loop checks the context
			continue
		}
		won, revision, err := g.campaign(ctx, session.Lease())
		switch {
		case err != nil:
			g.sleep(ctx)
		case !won:
			g.awaitVacancy(ctx, revision)
		default:
			g.opts.Log.Info("member runs the controllers of the ensemble now",
				slog.String("member", g.opts.Self.Name))
			g.lead(ctx, session.Lease(), work)
			g.resign(session.Lease())
		}
	}
}

// campaign acquires the leadership if it is vacant, or finds that this member has it. revision
// is that of the response.
func (g *Ensemble) campaign(ctx context.Context, lease clientv3.LeaseID) (won bool, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	key := g.key("controller")
	response, err := g.opts.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, g.opts.Self.Name, clientv3.WithLease(lease))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return false, 0, err
	}
	if response.Succeeded {
		return true, response.Header.Revision, nil
	}
	held := response.Responses[0].GetResponseRange().Kvs
	return len(held) > 0 && held[0].Lease == int64(lease), response.Header.Revision, nil
}

// awaitVacancy returns when the leadership, which was taken at a revision, may be vacant.
func (g *Ensemble) awaitVacancy(ctx context.Context, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, g.ttl) // this member's lease may have changed by then
	defer cancel()
	for response := range g.opts.Etcd.Watch(ctx, g.key("controller"), clientv3.WithRev(revision+1)) {
		for _, event := range response.Events {
			if event.Type == clientv3.EventTypeDelete {
				return
			}
		}
		if response.Err() != nil {
			g.sleep(ctx)
			return
		}
	}
}

// lead runs work until the context ends or the lease is lost.
func (g *Ensemble) lead(ctx context.Context, lease clientv3.LeaseID, work func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		for ctx.Err() == nil {
			session := g.Session()
			if session == nil || session.Lease() != lease || !g.Alive() {
				g.opts.Log.Warn("member no longer runs the controllers of the ensemble",
					slog.String("member", g.opts.Self.Name))
				return
			}
			_ = g.Changed(ctx) // the loop checks the context
		}
	})
	work(ctx)
	cancel()
	watching.Wait()
}

// resign gives up the leadership if this member still has it.
func (g *Ensemble) resign(lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	key := g.key("controller")
	_, err := g.opts.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.LeaseValue(key), "=", lease)).
		Then(clientv3.OpDelete(key)).
		Commit()
	if err != nil && !errors.Is(err, context.Canceled) {
		g.opts.Log.Warn("resigning failed; another member takes over the controllers when this member's lease ends",
			slog.Any("error", err))
	}
}

// Controller returns the name of the member that runs the controllers; "" when there is none.
func (g *Ensemble) Controller(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := g.opts.Etcd.Get(ctx, g.key("controller"))
	if err != nil || len(stored.Kvs) == 0 {
		return "", err
	}
	return string(stored.Kvs[0].Value), nil
}
