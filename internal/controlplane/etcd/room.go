package etcd

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Room describes how full the store is, in bytes.
type Room struct {
	File  int64 // size of the store's file, free pages included
	Used  int64 // used part of the file: current objects and the history that is not compacted yet
	Quota int64 // 0 if unknown
	// Exhausted is set when etcd itself rejects every write except deletions.
	Exhausted bool
}

// Store reports its free space, and frees some on request.
type Store interface {
	Room() Room
	// Relieve requests a compaction and does not wait for it.
	Relieve()
}

// nearly is the usage, in percent of the quota, from which new and growing objects are rejected.
// The rest is for changes that callers may always make.
const nearly = 90

// TakesGrowth reports whether callers may add n bytes.
func (r Room) TakesGrowth(n int64) bool {
	return !r.Exhausted && (r.Quota == 0 || r.Used+n <= r.Quota/100*nearly)
}

// TakesChanges reports whether there is space for n bytes that replace others. The replaced bytes
// stay until history is compacted.
func (r Room) TakesChanges(n int64) bool {
	return !r.Exhausted && (r.Quota == 0 || r.Used+n <= r.Quota)
}

// Tight reports whether large objects are rejected, and small ones soon will be.
func (r Room) Tight() bool { return !r.TakesGrowth(max(r.Quota/100, 256<<10)) }

const observeEvery = 5 * time.Second

// Observer follows how full an external etcd is. The operator of that etcd is responsible for
// compaction and defragmentation.
type Observer struct {
	client *clientv3.Client
	log    *slog.Logger
	room   atomic.Pointer[Room]
	cancel context.CancelFunc
}

// Observe starts an Observer.
func Observe(client *clientv3.Client, log *slog.Logger) *Observer {
	ctx, cancel := context.WithCancel(context.Background())
	o := &Observer{client: client, log: log, cancel: cancel}
	o.room.Store(&Room{})
	go o.run(ctx)
	return o
}

func (o *Observer) run(ctx context.Context) {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		o.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look queries the endpoints until one responds. An external etcd does not shrink its file
// automatically, so the file size counts as used.
func (o *Observer) look(ctx context.Context) {
	for _, endpoint := range o.client.Endpoints() {
		asking, cancel := context.WithTimeout(ctx, observeEvery)
		status, err := o.client.Status(asking, endpoint)
		cancel()
		if err != nil {
			o.log.Debug("querying the size of etcd failed; trying the next endpoint", slog.String("endpoint", endpoint),
				slog.Any("error", err))
			continue
		}
		o.room.Store(&Room{
			File: status.DbSize, Used: status.DbSize, Quota: status.DbSizeQuota,
			Exhausted: slices.ContainsFunc(status.Errors, func(text string) bool {
				return strings.Contains(text, etcdserverpb.AlarmType_NOSPACE.String())
			}),
		})
		return
	}
}

// Room implements Store.
func (o *Observer) Room() Room { return *o.room.Load() }

// Relieve implements Store. It does nothing, since the operator compacts an external etcd.
func (o *Observer) Relieve() {}

// Close stops the Observer.
func (o *Observer) Close() error {
	o.cancel()
	return nil
}
