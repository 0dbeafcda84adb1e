package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
)

// watchesTimeout bounds how long a stopping member waits for watches. One whose client does not read its events
// ends only when the client does.
const watchesTimeout = 2 * time.Second

// watches runs the watches of direct clients. A watch reads the store for the earlier values of its events, and
// etcd ends the process when a watch does so after the store is closed. etcd knows only the watches of its gRPC
// server, so a member ends these before it stops.
type watches struct {
	pb.WatchServer                 // of etcd
	ctx            context.Context //nolint:containedctx // ends all watches
	end            context.CancelFunc

	mu      sync.Mutex
	stopped bool // protected by mu; no watch begins any more
	running sync.WaitGroup
}

func newWatches(server *etcdserver.EtcdServer) *watches {
	w := &watches{WatchServer: v3rpc.NewWatchServer(server)}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

var errStopped = errors.New("etcd member is stopped")

// Watch implements pb.WatchServer.
func (w *watches) Watch(stream pb.Watch_WatchServer) error {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return errStopped
	}
	w.running.Add(1)
	w.mu.Unlock()
	defer w.running.Done()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	return w.WatchServer.Watch(&endingWatch{stream, ctx})
}

// stop ends all watches and waits for them, at most watchesTimeout.
func (w *watches) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.running.Wait()
	}()
	timer := time.NewTimer(watchesTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// endingWatch is the connection of a watch to its client, with a context that ends when the member stops.
type endingWatch struct {
	pb.Watch_WatchServer
	ctx context.Context //nolint:containedctx // of the stream
}

// Context implements grpc.ServerStream.
func (s *endingWatch) Context() context.Context { return s.ctx }
