package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/retry"
)

const (
	pageSize    = 100 // keys per read, with their values
	followRetry = time.Second
)

var errWatchEnded = errors.New("following the stored objects: etcd ended the watch")

// Follow counts the stored objects until the context ends, including objects that expire and writes
// of other replicas.
func (g *Guard) Follow(ctx context.Context, client *clientv3.Client, log *slog.Logger) {
	for ctx.Err() == nil {
		err := g.follow(ctx, client)
		if ctx.Err() != nil {
			return
		}
		log.Warn("following the usage of organizations failed; counting again", slog.Any("error", err))
		_ = retry.Sleep(ctx, followRetry)
	}
}

func (g *Guard) follow(ctx context.Context, client *clientv3.Client) error {
	objects, revision, err := g.load(ctx, client)
	if err != nil {
		return fmt.Errorf("reading the stored objects: %w", err)
	}
	g.usage.replace(objects, revision)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for response := range client.Watch(ctx, g.prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
		if err := response.Err(); err != nil {
			return fmt.Errorf("following the stored objects: %w", err)
		}
		for _, event := range response.Events {
			key := string(event.Kv.Key)
			if event.Type == clientv3.EventTypeDelete {
				g.usage.remove(key, event.Kv.ModRevision)
				continue
			}
			g.usage.put(key, g.parseKey(key), sizeOf(event.Kv.Key, event.Kv.Value), event.Kv.ModRevision)
		}
	}
	return errWatchEnded
}

// load reads all keys, page by page, at one revision.
func (g *Guard) load(ctx context.Context, client *clientv3.Client) (map[string]stored, int64, error) {
	objects := map[string]stored{}
	key, end, revision := g.prefix, clientv3.GetPrefixRangeEnd(g.prefix), int64(0)
	for {
		res, err := client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(pageSize),
			clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = res.Header.Revision
		}
		for _, kv := range res.Kvs {
			name := string(kv.Key)
			if p := g.parseKey(name); p.counted() {
				objects[name] = stored{p.organization, sizeOf(kv.Key, kv.Value), kv.ModRevision}
			}
		}
		if !res.More || len(res.Kvs) == 0 {
			return objects, revision, nil
		}
		key = string(res.Kvs[len(res.Kvs)-1].Key) + "\x00"
	}
}

// sizeOf returns the bytes that an object takes in the store.
func sizeOf(key, value []byte) int64 { return int64(len(key) + len(value)) }
