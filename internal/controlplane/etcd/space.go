package etcd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/retry"
)

// Space describes how full the store is, in bytes.
type Space struct {
	File  int64 // size of the store's file, free pages included
	Used  int64 // used part of the file: current objects and the history that is not compacted yet
	Quota int64 // 0 if unknown
	// Exhausted is set when etcd itself rejects every write except deletions.
	Exhausted bool
}

// Store reports its free space, and frees some on request.
type Store interface {
	Space() Space
	// RequestCompaction requests a compaction and does not wait for it.
	RequestCompaction()
}

// growthPercent is the usage, in percent of the quota, from which new and growing objects are rejected.
// The rest is for changes that callers may always make.
const growthPercent = 90

// AllowsGrowth reports whether callers may add n bytes.
func (r Space) AllowsGrowth(n int64) bool {
	return !r.Exhausted && (r.Quota == 0 || r.Used+n <= r.Quota/100*growthPercent)
}

// AllowsChanges reports whether there is space for n bytes that replace others. The replaced bytes
// stay until history is compacted.
func (r Space) AllowsChanges(n int64) bool {
	return !r.Exhausted && (r.Quota == 0 || r.Used+n <= r.Quota)
}

// ErrExhausted means that even the server's own writes fail. Writes of callers are rejected long
// before, while the server is ready.
var ErrExhausted = errors.New(
	"etcd is full and rejects all writes; see docs/howto/operate.md#when-the-resource-store-is-full")

// Health returns ErrExhausted if etcd rejects every write.
func (r Space) Health() error {
	if r.Exhausted {
		return ErrExhausted
	}
	return nil
}

// NearlyFull reports whether large objects are rejected, and small ones soon will be.
func (r Space) NearlyFull() bool { return !r.AllowsGrowth(max(r.Quota/100, 256<<10)) }

const observeInterval = 5 * time.Second

// Observer follows how full an external etcd is. The operator of that etcd is responsible for
// compaction and defragmentation.
type Observer struct {
	client *clientv3.Client
	log    *slog.Logger
	space  atomic.Pointer[Space]
	cancel context.CancelFunc
}

// Observe starts an Observer.
func Observe(client *clientv3.Client, log *slog.Logger) *Observer {
	ctx, cancel := context.WithCancel(context.Background())
	o := &Observer{client: client, log: log, cancel: cancel}
	o.space.Store(&Space{})
	go o.run(ctx)
	return o
}

func (o *Observer) run(ctx context.Context) {
	o.query(ctx)
	for range retry.Every(ctx, observeInterval) {
		o.query(ctx)
	}
}

// query queries the endpoints until one responds. An external etcd does not shrink its file
// automatically, so the file size counts as used.
func (o *Observer) query(ctx context.Context) {
	for _, endpoint := range o.client.Endpoints() {
		queryCtx, cancel := context.WithTimeout(ctx, observeInterval)
		status, err := o.client.Status(queryCtx, endpoint)
		cancel()
		if err != nil {
			o.log.Debug("querying the size of etcd failed; trying the next endpoint", slog.String("endpoint", endpoint),
				slog.Any("error", err))
			continue
		}
		o.space.Store(&Space{
			File: status.DbSize, Used: status.DbSize, Quota: status.DbSizeQuota,
			Exhausted: slices.ContainsFunc(status.Errors, func(text string) bool {
				return strings.Contains(text, etcdserverpb.AlarmType_NOSPACE.String())
			}),
		})
		return
	}
}

// Space implements Store.
func (o *Observer) Space() Space { return *o.space.Load() }

// RequestCompaction implements Store. It does nothing, since the operator compacts an external etcd.
func (o *Observer) RequestCompaction() {}

// Close stops the Observer.
func (o *Observer) Close() error {
	o.cancel()
	return nil
}
