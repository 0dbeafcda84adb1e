package replicated

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// marginShare is the fraction of a lease that is reserved as a margin for clocks that run at
// different rates.
const marginShare = 5

// watchedLease is a member's lease. It is valid by the monotonic clock from before the last
// successful renewal request, for the time to live less a margin. All shards of a member share
// it. A lease that has ended is replaced, as a member of an ensemble does it: a busy machine may
// renew one too late.
type watchedLease struct {
	client  *clientv3.Client
	seconds int // time to live
	session atomic.Pointer[concurrency.Session]
	begin   time.Time
	until   atomic.Int64 // since begin; 0 for never
}

// watchLease creates a lease, and renews and replaces it until ctx ends.
func watchLease(ctx context.Context, t testing.TB, client *clientv3.Client, seconds int) *watchedLease {
	t.Helper()
	l := &watchedLease{client: client, seconds: seconds, begin: time.Now()}
	if err := l.create(ctx); err != nil {
		t.Fatal(err)
	}
	go func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-ctx.Done():
				l.until.Store(0)
				return
			}
			ttl := l.renew(ctx)
			timer.Reset(max(ttl/4, 100*time.Millisecond))
		}
	}()
	return l
}

func (l *watchedLease) create(ctx context.Context) error {
	granting, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	granted, err := l.client.Grant(granting, int64(l.seconds))
	if err != nil {
		return err
	}
	s, err := concurrency.NewSession(l.client, concurrency.WithLease(granted.ID))
	if err == nil {
		l.session.Store(s)
	}
	return err
}

// Session implements Lease.
func (l *watchedLease) Session() *concurrency.Session { return l.session.Load() }

// Alive implements Lease.
func (l *watchedLease) Alive() bool { return int64(time.Since(l.begin)) < l.until.Load() }

// renew renews the lease and stores until when it is valid. It returns the time to live.
func (l *watchedLease) renew(ctx context.Context) time.Duration {
	select {
	case <-l.Session().Done():
		l.until.Store(0)
		if l.create(ctx) != nil {
			return 0
		}
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	sent := time.Since(l.begin)
	response, err := l.client.KeepAliveOnce(ctx, l.Session().Lease())
	if err != nil || response.TTL <= 0 {
		return 0
	}
	ttl := time.Duration(response.TTL) * time.Second
	l.until.Store(int64(sent + ttl - ttl/marginShare))
	return ttl
}
