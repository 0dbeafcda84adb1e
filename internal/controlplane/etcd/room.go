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

// Room is how full the store is, in bytes.
type Room struct {
	File  int64 // of the store's file, free pages included
	Used  int64 // of it, in use: what is stored, with the history that is not compacted yet
	Quota int64 // 0 when not known
	// Exhausted says that etcd itself refuses to store anything, and only deletes.
	Exhausted bool
}

// Store tells how much room there is, and makes some when it is asked to.
type Store interface {
	Room() Room
	// Relieve asks for compaction soon; it does not wait for it.
	Relieve()
}

// nearly is where new objects and growing ones are refused, in percent of the
// quota. What is left of it takes what callers may always do.
const nearly = 90

// TakesGrowth says whether there is room for n bytes that callers add.
func (r Room) TakesGrowth(n int64) bool {
	return !r.Exhausted && (r.Quota == 0 || r.Used+n <= r.Quota/100*nearly)
}

// TakesChanges says whether there is room for n bytes that replace others, which
// stay until history is compacted.
func (r Room) TakesChanges(n int64) bool {
	return !r.Exhausted && (r.Quota == 0 || r.Used+n <= r.Quota)
}

// Tight says that large objects are being refused, and small ones soon.
func (r Room) Tight() bool { return !r.TakesGrowth(max(r.Quota/100, 256<<10)) }

const observeEvery = 5 * time.Second

// Observer follows how full an external etcd is. Compaction and defragmentation
// there are its operator's.
type Observer struct {
	client *clientv3.Client
	log    *slog.Logger
	room   atomic.Pointer[Room]
	cancel context.CancelFunc
}

// Observe begins to follow.
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

// look asks the first endpoint that answers. Where etcd cannot shrink its file
// by itself, what counts is the file.
func (o *Observer) look(ctx context.Context) {
	for _, endpoint := range o.client.Endpoints() {
		asking, cancel := context.WithTimeout(ctx, observeEvery)
		status, err := o.client.Status(asking, endpoint)
		cancel()
		if err != nil {
			o.log.Debug("etcd did not tell how full it is", slog.String("endpoint", endpoint),
				slog.String("error", err.Error()))
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

// Relieve implements Store: there is nothing that could be done from here.
func (o *Observer) Relieve() {}

// Close ends following.
func (o *Observer) Close() error {
	o.cancel()
	return nil
}
