package journal

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/client/v3/concurrency"
)

// RebuildSteps is the number of steps after which CrashRebuild can end.
const RebuildSteps = 4

// CrashRebuild makes a member begin to rebuild a journal and end after some steps, as a crash would: it
// leaves the lock with a lease that ends with the session, the fenced stream, and a new stream that is
// incomplete or not in use.
func (s *Journals) CrashRebuild(ctx context.Context, name string, session *concurrency.Session, steps int) error {
	g := s.lookup(name)
	if g == nil {
		return fmt.Errorf("journal %q is not open", name)
	}
	keys, err := g.registry.read(ctx)
	if err != nil {
		return err
	}
	lock, err := g.registry.lock(ctx, s.opts.Member, "crashing", session.Lease())
	if err != nil || steps == 1 {
		return err
	}
	j, _ := g.healthy()
	end, _, err := j.fence(ctx)
	if err != nil || steps == 2 {
		return err
	}
	chosen, err := g.choose(ctx, keys, end)
	if err != nil {
		return err
	}
	v, err := g.build(ctx, chosen)
	if err != nil || steps == 3 {
		return err
	}
	return lock.replace(ctx, keys.streamText, v) // and ends before it uses the stream and removes the old one
}
