package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
)

// holdLease acquires a lease, and a new one whenever it is lost, until the context ends or
// the member has retired.
func (g *Ensemble) holdLease(ctx context.Context) {
	first := true
	warnings := lograte.New(retryWarnings)
	for ctx.Err() == nil {
		session, requestedAt, err := g.grant(ctx)
		if err != nil {
			if ctx.Err() == nil {
				g.opts.Log.LogAttrs(ctx, warnings.Level("lease"),
					"member has no lease and serves no clients because it does "+
						"not reach a majority of the ensemble; retrying",
					slog.String("member", g.opts.Self.Name), slog.Any("error", err))
			}
			g.sleep(ctx)
			continue
		}
		warnings.Forget("lease")
		lost := make(chan struct{})
		caught := make(chan error, 1)
		go func(first bool) {
			if first || g.opts.State == nil {
				caught <- nil // this member has read nothing yet that could be stale
				return
			}
			caught <- g.catchUp(ctx, lost)
		}(first)
		err = g.renew(ctx, session, requestedAt, caught)
		close(lost)
		first = false
		if ctx.Err() != nil {
			return
		}
		g.expire()
		g.dropSession()
		if g.retired.Load() {
			return
		}
		g.opts.Log.Warn("member has lost its lease and serves no clients until it has a new one",
			slog.String("member", g.opts.Self.Name), slog.Any("error", err))
	}
}

func (g *Ensemble) sleep(ctx context.Context) {
	_ = retry.Sleep(ctx, retryInterval) // callers check the context
}

// grant acquires a lease and binds this member's record to it. requestedAt is when the request
// was sent.
func (g *Ensemble) grant(ctx context.Context) (session *concurrency.Session, requestedAt time.Time, err error) {
	requestedAt = time.Now()
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	granted, err := g.opts.Etcd.Grant(bounded, int64(g.ttl/time.Second))
	if err != nil {
		return nil, requestedAt, err
	}
	session, err = concurrency.NewSession(g.opts.Etcd, concurrency.WithLease(granted.ID), concurrency.WithContext(ctx))
	if err != nil {
		return nil, requestedAt, err
	}
	if err := g.publish(ctx, granted.ID); err != nil {
		session.Orphan()
		return nil, requestedAt, err
	}
	g.change(func() { g.session = session })
	return session, requestedAt, nil
}

// catchUp retries State.CatchUp until it succeeds, the lease is lost or the context ends.
func (g *Ensemble) catchUp(ctx context.Context, lost <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		err := g.opts.State.CatchUp(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		g.opts.Log.Warn("member could not catch up after it had lost its lease; retrying",
			slog.Any("error", err))
		g.sleep(ctx)
	}
}

// renew renews a lease until that fails, and returns why. It extends Alive from the moment
// the member has caught up. The session renews the lease too, and ends when its own renewals get no
// response in time. Then the lease counts as lost, even if it is still valid: work that depends on the
// session, such as owning a shard, would end right after each beginning.
func (g *Ensemble) renew(ctx context.Context, session *concurrency.Session, requestedAt time.Time,
	caught <-chan error,
) error {
	tick := time.NewTicker(g.ttl / leaseFraction)
	defer tick.Stop()
	end := requestedAt.Add(g.ttl - g.ttl/leaseFraction)
	current := false
	for {
		if current {
			g.extend(end)
		}
		select {
		case err := <-caught:
			if err != nil {
				return err
			}
			current, caught = true, nil
			g.extend(end)
			g.change(func() {})
			continue
		case <-tick.C:
		case <-session.Done():
			return errors.New("session of the lease has ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		requestedAt := time.Now()
		bounded, cancel := context.WithDeadline(ctx, end)
		_, err := g.opts.Etcd.KeepAliveOnce(bounded, session.Lease())
		cancel()
		switch {
		case err == nil:
			end = requestedAt.Add(g.ttl - g.ttl/leaseFraction)
		case errors.Is(err, rpctypes.ErrLeaseNotFound), !time.Now().Before(end):
			return fmt.Errorf("renewing the lease: %w", err)
		}
	}
}

// extend sets until when this member is alive.
func (g *Ensemble) extend(end time.Time) {
	g.wallDeadline.Store(end.UnixNano())
	g.deadline.Store(int64(end.Sub(g.clockBase)))
}

// expire makes Alive return false immediately.
func (g *Ensemble) expire() { g.deadline.Store(0) }

// dropSession abandons the session of a lost lease.
func (g *Ensemble) dropSession() {
	if session := g.Session(); session != nil {
		session.Orphan()
	}
	g.change(func() { g.session = nil })
}

// watchMembers watches the live members until the context ends.
func (g *Ensemble) watchMembers(ctx context.Context) {
	changes := &changeLogger{log: g.opts.Log, self: g.opts.Self.Name}
	warnings := lograte.New(retryWarnings)
	for ctx.Err() == nil {
		if err := g.watch(ctx, changes); err != nil && ctx.Err() == nil {
			g.opts.Log.LogAttrs(ctx, warnings.Level("watch"), "watching the other members failed; retrying",
				slog.Any("error", err))
		}
		g.sleep(ctx)
	}
}

// watch reads the live members, and then applies changes.
func (g *Ensemble) watch(ctx context.Context, changes *changeLogger) error {
	prefix := g.key("live/")
	attempt, cancel := context.WithTimeout(ctx, callTimeout)
	stored, err := g.opts.Etcd.Get(attempt, prefix, clientv3.WithPrefix())
	cancel()
	if err != nil {
		return err
	}
	live := map[string]Record{}
	for _, kv := range stored.Kvs {
		if record, ok := decode(kv.Value, kv.Lease); ok {
			live[record.Name] = record
		}
	}
	changes.logChanges(live)
	g.change(func() { g.live = live })
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	for response := range g.opts.Etcd.Watch(ctx, prefix, clientv3.WithPrefix(),
		clientv3.WithRev(stored.Header.Revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		var now map[string]Record
		g.change(func() {
			for _, event := range response.Events {
				name := strings.TrimPrefix(string(event.Kv.Key), prefix)
				if event.Type == clientv3.EventTypeDelete {
					delete(g.live, name)
				} else if record, ok := decode(event.Kv.Value, event.Kv.Lease); ok {
					g.live[name] = record
				}
			}
			now = maps.Clone(g.live)
		})
		changes.logChanges(now)
	}
	return context.Cause(ctx)
}

func decode(value []byte, lease int64) (record Record, ok bool) {
	ok = json.Unmarshal(value, &record) == nil
	record.Lease = clientv3.LeaseID(lease)
	return record, ok
}
