package replicated

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/test/poll"
)

// electing is an etcd without a leader for the next tries transactions that delete a key.
type electing struct {
	clientv3.KV
	tries atomic.Int32
}

func (e *electing) Txn(ctx context.Context) clientv3.Txn {
	return &electingTxn{Txn: e.KV.Txn(ctx), ctx: ctx, etcd: e}
}

type electingTxn struct {
	clientv3.Txn
	ctx     context.Context
	etcd    *electing
	removes bool
}

func (x *electingTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	x.Txn = x.Txn.If(cmps...)
	return x
}

func (x *electingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.removes = slices.ContainsFunc(ops, func(op clientv3.Op) bool { return op.IsDelete() })
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *electingTxn) Commit() (*clientv3.TxnResponse, error) {
	if x.removes && x.etcd.tries.Add(-1) >= 0 {
		<-x.ctx.Done() // etcd drops the request
		return nil, x.ctx.Err()
	}
	return x.Txn.Commit()
}

// TestHandedOverWhileEtcdElects: an owner gives up its shard while etcd does not respond.
// The owner key is removed when etcd responds again, and another member gets the shard
// although the previous owner is still alive.
func TestHandedOverWhileEtcdElects(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	kv := &electing{}
	a := tm.start(t, "a", 0, vfs.NewCrashableMem(), func(o *Options) {
		kv.KV = o.Etcd.KV
		o.Etcd.KV = kv
	})
	a.awaitOwner(t)
	b := tm.start(t, "b", 0, vfs.NewCrashableMem())
	b.awaitOwnerSeen(t, "a")
	kv.tries.Store(2)
	a.postponeCampaign(time.Minute)
	a.requestHandOver()
	b.awaitOwner(t)
	if left := kv.tries.Load(); left >= 0 {
		t.Errorf("the key was removed although %d more attempts were to fail", left)
	}
	a.awaitOwnerSeen(t, "b")
	a.stop(t)
	b.stop(t)
}

// TestShutdownWhileTakingOver: a member takes over a shard whose log has no majority, and shuts down
// before the log has taken its epoch record.
func TestShutdownWhileTakingOver(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 3, natstest.Unverified)
	g.lease = killedSeconds
	tm := g.team()
	a := tm.start(t, "a", 0, vfs.NewCrashableMem())
	fill(t, a.awaitOwner(t), 3)
	leader := g.nats.Leader(t.Context(), a.js.Conn(), streamName(&a.o))
	b := tm.start(t, "b", leader, vfs.NewCrashableMem())
	b.awaitApplied(t, a.applied.Load())
	for i := range 3 {
		if i != leader {
			g.nats.Stop(i)
		}
	}
	a.kill(t)
	takesOver := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.view.owner.Instance == b.instance
	}
	poll.Until(t, time.Minute, "member b takes over the shard", takesOver)
	ctx, cancel := context.WithTimeout(t.Context(), silenceTimeout) // after that an attempt ends without a shutdown
	defer cancel()
	if err := b.HandOver(ctx); err != nil {
		t.Errorf("hand over: got error %v, want none", err)
	}
	b.stop(t)
}
