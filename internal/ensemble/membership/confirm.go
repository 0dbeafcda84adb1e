package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Confirm returns when every other member has heard of something that was just
// stored, or cannot answer anybody any more. tell has one of them hear of it, and is
// repeated until it succeeds.
//
// Who was there is asked of etcd after the store: a member that comes later finds
// what was stored. One that does not answer for the time of a lease
// loses it, and has noticed when that time has passed once more. So Confirm is bounded
// while there is a majority; without one it waits until there is, or the context ends.
func (g *Group) Confirm(ctx context.Context, tell func(ctx context.Context, member Record) error) error {
	present, err := g.present(ctx)
	if err != nil {
		return err
	}
	problems := make([]error, len(present))
	var asked sync.WaitGroup
	for i, member := range present {
		asked.Go(func() { problems[i] = g.confirm(ctx, member, tell) })
	}
	asked.Wait()
	return errors.Join(problems...)
}

// present are the other members that may be answering clients at this moment.
func (g *Group) present(ctx context.Context) (list []Record, err error) {
	for {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		answer, err := g.opts.Etcd.Txn(asking).Then(
			clientv3.OpGet(g.key("live/"), clientv3.WithPrefix()),
			clientv3.OpGet(g.key("leaving/"), clientv3.WithPrefix()),
		).Commit()
		cancel()
		if err == nil {
			for _, part := range answer.Responses {
				for _, kv := range part.GetResponseRange().Kvs {
					lease := kv.Lease
					if _, err := fmt.Sscanf(strings.TrimPrefix(string(kv.Key), g.key("leaving/")), "%x",
						&lease); err != nil {
						lease = kv.Lease // one that is live
					}
					if record, ok := decode(kv.Value, lease); ok && record.Name != g.opts.Self.Name {
						list = append(list, record)
					}
				}
			}
			return list, nil
		}
		g.pause(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("asking who is in the group: %w", context.Cause(ctx))
		}
	}
}

// confirm has one member told, or waits for its end.
func (g *Group) confirm(ctx context.Context, member Record, tell func(context.Context, Record) error) error {
	began := time.Now()
	for {
		asking, cancel := context.WithTimeout(ctx, callTimeout)
		err := tell(asking, member)
		cancel()
		if err == nil {
			return nil
		}
		if gone, err := g.gone(ctx, member); err == nil && gone {
			return nil
		}
		if time.Since(began) > g.ttl { // it renews its lease, or had just done so
			g.opts.Log.Warn("a member does not answer the others, and loses its lease",
				slog.String("member", member.Name), slog.String("error", err.Error()))
			if err := g.fence(ctx, member); err != nil && ctx.Err() == nil {
				g.opts.Log.Warn("the lease of a member could not be taken from it; trying again",
					slog.String("error", err.Error()))
			}
		}
		g.pause(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for member %s: %w", member.Name, context.Cause(ctx))
		}
	}
}

// lookAfter calls the other members every now and then, and takes the leases of those
// whose machines say that they have gone.
func (g *Group) lookAfter(ctx context.Context) {
	refused := map[clientv3.LeaseID]int{}
	tick := time.NewTicker(g.ttl / (2 * share))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := map[clientv3.LeaseID]int{}
		for _, member := range g.Live() {
			if member.Name == g.opts.Self.Name || !g.Alive() || !g.refuses(ctx, member) {
				continue
			}
			if now[member.Lease] = refused[member.Lease] + 1; now[member.Lease] < goneAfter {
				continue
			}
			level := slog.LevelWarn
			if !member.Ready { // it has said that it stops, or had not begun
				level = slog.LevelInfo
			}
			g.opts.Log.Log(ctx, level, "nobody listens any more where a member was, and it loses its lease",
				slog.String("member", member.Name))
			if err := g.fence(ctx, member); err != nil && ctx.Err() == nil {
				g.opts.Log.Warn("the lease of a member could not be taken from it; trying again",
					slog.String("error", err.Error()))
			}
		}
		refused = now
	}
}

// goneAfter is how often in a row nobody may listen.
const goneAfter = 2

// refuses says whether nobody listens where a member was. Silence is not that.
func (g *Group) refuses(ctx context.Context, member Record) bool {
	ctx, cancel := context.WithTimeout(ctx, g.ttl/share)
	defer cancel()
	return errors.Is(g.opts.Reach(ctx, member.Name), syscall.ECONNREFUSED)
}

func (g *Group) leaving(member Record) string {
	return g.key(fmt.Sprintf("leaving/%x", int64(member.Lease)))
}

// gone says whether a member's lease has ended, and it knows that.
func (g *Group) gone(ctx context.Context, member Record) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := g.opts.Etcd.Txn(ctx).Then(
		clientv3.OpGet(g.key("live/"+member.Name)), clientv3.OpGet(g.leaving(member)),
	).Commit()
	if err != nil {
		return false, err
	}
	live, leaving := answer.Responses[0].GetResponseRange().Kvs, answer.Responses[1].GetResponseRange().Kvs
	return (len(live) == 0 || live[0].Lease != int64(member.Lease)) && len(leaving) == 0, nil
}

// fenceTimeout bounds one try of it: etcd, which may have lost its leader with the
// member, drops what it is asked while it elects another.
const fenceTimeout = time.Second

// fence takes a member's lease from it. The key that says so stays for as long as the
// member may not have noticed.
func (g *Group) fence(ctx context.Context, member Record) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	key := g.leaving(member)
	known, err := g.opts.Etcd.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil || known.Count > 0 {
		return err
	}
	// It counts from now, and the member may renew its lease until the call below ends.
	granted, err := g.opts.Etcd.Grant(ctx, int64((g.ttl+fenceTimeout)/time.Second))
	if err != nil {
		return err
	}
	live := g.key("live/" + member.Name)
	found, err := g.opts.Etcd.Get(ctx, live)
	if err != nil || len(found.Kvs) == 0 || found.Kvs[0].Lease != int64(member.Lease) {
		return err // it has ended by itself
	}
	if _, err := g.opts.Etcd.Put(ctx, key, string(found.Kvs[0].Value), clientv3.WithLease(granted.ID)); err != nil {
		return err
	}
	if _, err := g.opts.Etcd.Revoke(ctx, member.Lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	return nil
}
