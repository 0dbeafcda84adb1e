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

	"freshet/internal/base/retry"
)

// Confirm returns when every other member has applied a change that was just stored, or can
// no longer serve clients. notify is called for each member and retried until it succeeds.
//
// Confirm reads the list of members from etcd after the change was stored, so a member that
// joins later reads the change itself. A member that does not respond for the time to live
// of a lease is fenced: its lease is revoked, and it has noticed after the same time again.
// So Confirm is bounded while there is a majority. Without a majority it waits until there
// is one or the context ends.
func (g *Ensemble) Confirm(ctx context.Context, notify func(ctx context.Context, member Record) error) error {
	present, err := g.presentMembers(ctx)
	if err != nil {
		return err
	}
	problems := make([]error, len(present))
	var calls sync.WaitGroup
	for i, member := range present {
		calls.Go(func() { problems[i] = g.confirm(ctx, member, notify) })
	}
	calls.Wait()
	return errors.Join(problems...)
}

// presentMembers returns the other members that may be serving clients at this moment.
func (g *Ensemble) presentMembers(ctx context.Context) (list []Record, err error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		response, err := g.opts.Etcd.Txn(attempt).Then(
			clientv3.OpGet(g.key("live/"), clientv3.WithPrefix()),
			clientv3.OpGet(g.key("leaving/"), clientv3.WithPrefix()),
		).Commit()
		cancel()
		if err == nil {
			for _, part := range response.Responses {
				for _, kv := range part.GetResponseRange().Kvs {
					lease := kv.Lease
					if _, err := fmt.Sscanf(strings.TrimPrefix(string(kv.Key), g.key("leaving/")), "%x",
						&lease); err != nil {
						lease = kv.Lease // a key below live/
					}
					if record, ok := decode(kv.Value, lease); ok && record.Name != g.opts.Self.Name {
						list = append(list, record)
					}
				}
			}
			return list, nil
		}
		g.sleep(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("listing the members of the ensemble: %w", context.Cause(ctx))
		}
	}
}

// confirm notifies one member, or waits until its lease has ended.
func (g *Ensemble) confirm(ctx context.Context, member Record, notify func(context.Context, Record) error) error {
	began := time.Now()
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		err := notify(attempt, member)
		cancel()
		if err == nil {
			return nil
		}
		if gone, err := g.hasLeft(ctx, member); err == nil && gone {
			return nil
		}
		if time.Since(began) > g.ttl { // its lease had just been renewed, or still is
			g.opts.Log.Warn("member does not respond to the other members; its lease is revoked",
				slog.String("member", member.Name), slog.Any("error", err))
			if err := g.fence(ctx, member); err != nil && ctx.Err() == nil {
				g.opts.Log.Warn("revoking the lease of a member failed; retrying",
					slog.String("member", member.Name), slog.Any("error", err))
			}
		}
		g.sleep(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for member %s: %w", member.Name, context.Cause(ctx))
		}
	}
}

// probeMembers regularly calls the other members and fences those whose machine refuses the
// connection.
func (g *Ensemble) probeMembers(ctx context.Context) {
	refused := map[clientv3.LeaseID]int{}
	for range retry.Every(ctx, g.ttl/(2*leaseFraction)) {
		now := map[clientv3.LeaseID]int{}
		for _, member := range g.Live() {
			if member.Name == g.opts.Self.Name || !g.Alive() || !g.refusesConnection(ctx, member) {
				continue
			}
			if now[member.Lease] = refused[member.Lease] + 1; now[member.Lease] < refusalsBeforeFence {
				continue
			}
			level := slog.LevelWarn
			if !member.Ready { // it announced its shutdown, or has not become ready
				level = slog.LevelInfo
			}
			g.opts.Log.Log(ctx, level, "member refuses connections, so its process has ended; its lease is revoked",
				slog.String("member", member.Name))
			if err := g.fence(ctx, member); err != nil && ctx.Err() == nil {
				g.opts.Log.Warn("revoking the lease of a member failed; retrying",
					slog.String("member", member.Name), slog.Any("error", err))
			}
		}
		refused = now
	}
}

// refusalsBeforeFence is the number of consecutive refused connections before a member is fenced.
const refusalsBeforeFence = 2

// refusesConnection reports whether a member's machine refuses the connection. A missing response is
// not a refusal.
func (g *Ensemble) refusesConnection(ctx context.Context, member Record) bool {
	ctx, cancel := context.WithTimeout(ctx, g.ttl/leaseFraction)
	defer cancel()
	return errors.Is(g.opts.Prober.Probe(ctx, member.Name), syscall.ECONNREFUSED)
}

func (g *Ensemble) leavingKey(member Record) string {
	return g.key(fmt.Sprintf("leaving/%x", int64(member.Lease)))
}

// hasLeft reports whether a member's lease has ended and the member has noticed.
func (g *Ensemble) hasLeft(ctx context.Context, member Record) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := g.opts.Etcd.Txn(ctx).Then(
		clientv3.OpGet(g.key("live/"+member.Name)), clientv3.OpGet(g.leavingKey(member)),
	).Commit()
	if err != nil {
		return false, err
	}
	live, leaving := response.Responses[0].GetResponseRange().Kvs, response.Responses[1].GetResponseRange().Kvs
	return (len(live) == 0 || live[0].Lease != int64(member.Lease)) && len(leaving) == 0, nil
}

// fenceTimeout bounds one attempt to fence a member. etcd may have lost its leader with that
// member, and drops requests while it elects another one.
const fenceTimeout = time.Second

// fence revokes a member's lease. The leaving key exists until the member has certainly
// noticed.
func (g *Ensemble) fence(ctx context.Context, member Record) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	key := g.leavingKey(member)
	known, err := g.opts.Etcd.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil || known.Count > 0 {
		return err
	}
	// The TTL counts from now, and the member may renew its lease until Revoke returns.
	granted, err := g.opts.Etcd.Grant(ctx, int64((g.ttl+fenceTimeout)/time.Second))
	if err != nil {
		return err
	}
	live := g.key("live/" + member.Name)
	stored, err := g.opts.Etcd.Get(ctx, live)
	if err != nil || len(stored.Kvs) == 0 || stored.Kvs[0].Lease != int64(member.Lease) {
		return err // the lease has already ended
	}
	if _, err := g.opts.Etcd.Put(ctx, key, string(stored.Kvs[0].Value), clientv3.WithLease(granted.ID)); err != nil {
		return err
	}
	if _, err := g.opts.Etcd.Revoke(ctx, member.Lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	return nil
}
