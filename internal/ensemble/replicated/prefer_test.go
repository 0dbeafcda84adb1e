package replicated

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

// TestAShardReturnsToItsPreferredMemberUnderLoad: the shard returns although more messages
// are written between two reports of a copy than a member may lag.
func TestAShardReturnsToItsPreferredMemberUnderLoad(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	soon := func(o *Options) { o.Settle = time.Second }
	b := tm.start(t, "b", 0, vfs.NewCrashableMem(), soon)
	e := b.awaitOwner(t)
	if err := e.CreateTopic(t.Context(), 1, retainAll); err != nil {
		t.Fatal(err)
	}
	loading, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		n := 0
		for loading.Err() == nil {
			if _, err := e.Append(loading, 1, 0, []engine.Message{{}}); err != nil {
				break
			}
			n++
		}
		ended <- n
	}()
	a := tm.start(t, "a", 0, vfs.NewCrashableMem(), soon)
	a.awaitOwner(t)
	stop()
	if n := <-ended; n < 4*maxCaughtUpLag {
		t.Logf("NOT TESTED: only %d messages were appended meanwhile", n)
	}
	a.stop(t)
	b.stop(t)
}
