package replicated

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// marginShare is the fraction of a lease that is reserved as a margin for clocks that run at
// different rates.
const marginShare = 5

// watchLease returns a function that reports whether the member's lease is certainly valid
// by the monotonic clock: from before the last successful renewal request, for the time to
// live less a margin. All shards of a member share it. It ends with ctx.
func watchLease(ctx context.Context, client *clientv3.Client, session func() *concurrency.Session) (live func() bool) {
	begin := time.Now()
	var until atomic.Int64 // since begin; 0 for never
	go func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-ctx.Done():
				until.Store(0)
				return
			}
			ttl := renew(ctx, client, session(), begin, &until)
			timer.Reset(max(ttl/4, 100*time.Millisecond))
		}
	}()
	return func() bool { return int64(time.Since(begin)) < until.Load() }
}

// renew renews a lease and stores until when it is valid. It returns the time to live.
func renew(ctx context.Context, client *clientv3.Client, s *concurrency.Session, begin time.Time,
	until *atomic.Int64,
) time.Duration {
	if s == nil {
		return 0
	}
	select {
	case <-s.Done():
		until.Store(0)
		return 0
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	sent := time.Since(begin)
	response, err := client.KeepAliveOnce(ctx, s.Lease())
	if err != nil || response.TTL <= 0 {
		return 0
	}
	ttl := time.Duration(response.TTL) * time.Second
	until.Store(int64(sent + ttl - ttl/marginShare))
	return ttl
}
