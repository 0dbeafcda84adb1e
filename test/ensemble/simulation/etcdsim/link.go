package etcdsim

import (
	"context"
	"io"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Link is the connection of one member to the store.
type Link struct {
	s *Store

	mu  sync.Mutex    // protects cut
	cut chan struct{} // closed while the member is cut off
}

// Link returns a connection for a member.
func (s *Store) Link() *Link { return &Link{s: s, cut: make(chan struct{})} }

// Client returns a client that uses the link until the context ends.
func (l *Link) Client(ctx context.Context) *clientv3.Client {
	c := clientv3.NewCtxClient(ctx)
	c.KV = clientv3.NewKVFromKVClient(&kvClient{l}, c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(&leaseClient{l}, c, time.Second)
	c.Watcher = &watcher{l: l}
	return c
}

// Cut disconnects the member until Restore: calls wait for their timeout, watches fail.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.cut:
	default:
		close(l.cut)
	}
}

// Restore ends Cut.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.cut:
		l.cut = make(chan struct{})
	default:
	}
}

func (l *Link) state() (cut <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

var errUnavailable = status.Error(codes.Unavailable, "simulated etcd is unreachable")

// travel waits as long as a message is on its way, or returns an error if it does not arrive.
func (l *Link) travel(ctx context.Context) error {
	l.s.mu.Lock()
	delay := 50*time.Microsecond + time.Duration(l.s.random.Int64N(int64(2*time.Millisecond)))
	l.s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
	select {
	case <-l.state():
		select { // a cut connection does not say so
		case <-time.After(2 * time.Second):
			return errUnavailable
		case <-ctx.Done():
		}
	default:
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

// call executes a call over the link.
func call[T any](ctx context.Context, l *Link, f func(*Store) T) (T, error) {
	var none T
	if err := l.travel(ctx); err != nil {
		return none, err
	}
	l.s.mu.Lock()
	out := f(l.s)
	lost := l.s.random.Float64() < l.s.silent
	l.s.mu.Unlock()
	if lost {
		return none, errUnavailable
	}
	return out, l.travel(ctx)
}

// kvClient implements etcdserverpb.KVClient.
type kvClient struct{ l *Link }

func (c *kvClient) Range(ctx context.Context, r *etcdserverpb.RangeRequest, _ ...grpc.CallOption,
) (*etcdserverpb.RangeResponse, error) {
	return call(ctx, c.l, func(s *Store) *etcdserverpb.RangeResponse { return s.rangeLocked(r) })
}

// RangeStream is not simulated.
func (c *kvClient) RangeStream(context.Context, *etcdserverpb.RangeRequest, ...grpc.CallOption,
) (grpc.ServerStreamingClient[etcdserverpb.RangeStreamResponse], error) {
	return nil, status.Error(codes.Unimplemented, "not simulated")
}

func (c *kvClient) Put(ctx context.Context, r *etcdserverpb.PutRequest, _ ...grpc.CallOption,
) (*etcdserverpb.PutResponse, error) {
	out, err := call(ctx, c.l, func(s *Store) *etcdserverpb.PutResponse {
		if !s.hasLeaseLocked(r) {
			return nil
		}
		s.revision++
		out := s.putLocked(r)
		out.Header = s.headerLocked()
		return out
	})
	return out, orNoLease(out == nil, err)
}

// orNoLease returns the error of a call, or ErrLeaseNotFound.
func orNoLease(none bool, err error) error {
	if err == nil && none {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	return err
}

func (c *kvClient) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest, _ ...grpc.CallOption,
) (*etcdserverpb.DeleteRangeResponse, error) {
	return call(ctx, c.l, func(s *Store) *etcdserverpb.DeleteRangeResponse {
		s.revision++
		out := s.deleteLocked(r)
		out.Header = s.headerLocked()
		return out
	})
}

func (c *kvClient) Txn(ctx context.Context, r *etcdserverpb.TxnRequest, _ ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	out, err := call(ctx, c.l, func(s *Store) *etcdserverpb.TxnResponse {
		s.revision++
		return s.txnLocked(r)
	})
	return out, orNoLease(out == nil, err)
}

// Compact is not simulated.
func (c *kvClient) Compact(context.Context, *etcdserverpb.CompactionRequest, ...grpc.CallOption,
) (*etcdserverpb.CompactionResponse, error) {
	return nil, status.Error(codes.Unimplemented, "not simulated")
}

// leaseClient implements the part of etcdserverpb.LeaseClient that sessions use.
type leaseClient struct{ l *Link }

func (c *leaseClient) LeaseGrant(ctx context.Context, r *etcdserverpb.LeaseGrantRequest, _ ...grpc.CallOption,
) (*etcdserverpb.LeaseGrantResponse, error) {
	return call(ctx, c.l, func(s *Store) *etcdserverpb.LeaseGrantResponse {
		s.nextLease++
		id := s.nextLease
		ttl := time.Duration(r.TTL) * time.Second
		s.leases[id] = &lease{ttl, time.Now().Add(ttl)}
		s.wg.Go(func() { s.watchLease(id) })
		return &etcdserverpb.LeaseGrantResponse{Header: s.headerLocked(), ID: id, TTL: r.TTL}
	})
}

func (c *leaseClient) LeaseRevoke(ctx context.Context, r *etcdserverpb.LeaseRevokeRequest, _ ...grpc.CallOption,
) (*etcdserverpb.LeaseRevokeResponse, error) {
	return call(ctx, c.l, func(s *Store) *etcdserverpb.LeaseRevokeResponse {
		s.revokeLocked(r.ID)
		return &etcdserverpb.LeaseRevokeResponse{Header: s.headerLocked()}
	})
}

func (c *leaseClient) LeaseTimeToLive(ctx context.Context, r *etcdserverpb.LeaseTimeToLiveRequest, _ ...grpc.CallOption,
) (*etcdserverpb.LeaseTimeToLiveResponse, error) {
	return call(ctx, c.l, func(s *Store) *etcdserverpb.LeaseTimeToLiveResponse {
		out := &etcdserverpb.LeaseTimeToLiveResponse{Header: s.headerLocked(), ID: r.ID, TTL: -1}
		if l := s.leases[r.ID]; l != nil {
			out.TTL, out.GrantedTTL = int64(time.Until(l.ends)/time.Second), int64(l.ttl/time.Second)
		}
		return out
	})
}

// LeaseLeases is not simulated.
func (c *leaseClient) LeaseLeases(context.Context, *etcdserverpb.LeaseLeasesRequest, ...grpc.CallOption,
) (*etcdserverpb.LeaseLeasesResponse, error) {
	return nil, status.Error(codes.Unimplemented, "not simulated")
}

func (c *leaseClient) LeaseKeepAlive(
	ctx context.Context, _ ...grpc.CallOption,
) (etcdserverpb.Lease_LeaseKeepAliveClient, error) {
	if err := c.l.travel(ctx); err != nil {
		return nil, err
	}
	return &keepAlive{
		streamBase: streamBase{ctx: ctx}, l: c.l, cut: c.l.state(), broken: make(chan struct{}, 1),
		renewed: make(chan *etcdserverpb.LeaseKeepAliveResponse, 16),
	}, nil
}

// streamBase implements the methods of a stream that the client does not need.
type streamBase struct {
	grpc.ClientStream
	ctx context.Context
}

// Context implements grpc.ClientStream.
func (s *streamBase) Context() context.Context { return s.ctx }

// CloseSend implements grpc.ClientStream.
func (s *streamBase) CloseSend() error { return nil }

// keepAlive renews leases.
type keepAlive struct {
	streamBase
	l       *Link
	cut     <-chan struct{}
	broken  chan struct{} // signal: a request or its response was lost, so the stream has ended
	renewed chan *etcdserverpb.LeaseKeepAliveResponse
}

func (k *keepAlive) Send(r *etcdserverpb.LeaseKeepAliveRequest) error {
	select {
	case <-k.cut:
		return io.EOF
	default:
	}
	out, err := call(k.ctx, k.l, func(s *Store) *etcdserverpb.LeaseKeepAliveResponse {
		out := &etcdserverpb.LeaseKeepAliveResponse{Header: s.headerLocked(), ID: r.ID}
		if l := s.leases[r.ID]; l != nil {
			l.ends = time.Now().Add(l.ttl)
			out.TTL = int64(l.ttl / time.Second)
		}
		return out
	})
	if err != nil {
		select {
		case k.broken <- struct{}{}:
		default:
		}
		return io.EOF
	}
	select {
	case k.renewed <- out:
	default: // as a response that got lost
	}
	return nil
}

func (k *keepAlive) Recv() (*etcdserverpb.LeaseKeepAliveResponse, error) {
	select {
	case out := <-k.renewed:
		return out, nil
	case <-k.cut:
		return nil, errUnavailable
	case <-k.broken:
		return nil, errUnavailable
	case <-k.ctx.Done():
		return nil, status.FromContextError(k.ctx.Err()).Err()
	}
}

// watcher implements clientv3.Watcher itself: the real one uses a channel of its package, which stops
// simulated time. Like the real one, it continues after a cut where it was.
type watcher struct {
	l *Link
	g sync.WaitGroup
}

// Watch implements clientv3.Watcher.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	from, end := op.Rev(), op.RangeBytes()
	out := make(chan clientv3.WatchResponse)
	w.g.Go(func() {
		defer close(out)
		for ctx.Err() == nil {
			if w.l.travel(ctx) != nil {
				continue // as long as the member is cut off
			}
			response, changed := w.l.s.eventsFrom(from, []byte(key), end)
			from = response.Header.Revision + 1
			if len(response.Events) > 0 {
				select {
				case out <- response:
				case <-ctx.Done():
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	return out
}

// RequestProgress implements clientv3.Watcher.
func (w *watcher) RequestProgress(context.Context) error { return nil }

// Close implements clientv3.Watcher.
func (w *watcher) Close() error {
	w.g.Wait()
	return nil
}

// eventsFrom returns the events of a range from a revision on, or a channel that is closed at the next
// event. Revision 0 means from now on.
func (s *Store) eventsFrom(from int64, key, end []byte) (clientv3.WatchResponse, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := clientv3.WatchResponse{Header: s.headerLocked()}
	if from == 0 {
		return out, s.changed
	}
	for _, e := range s.events {
		if e.Kv.ModRevision >= from && inRange(e.Kv.Key, key, end) {
			out.Events = append(out.Events, e)
		}
	}
	return out, s.changed
}
