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
// owner is the member that has the lock: a running member with that name continues at once.
func (s *Journals) CrashRebuild(ctx context.Context, name, owner string, session *concurrency.Session,
	steps int,
) error {
	g := s.lookup(name)
	if g == nil {
		return fmt.Errorf("journal %q is not open", name)
	}
	keys, err := g.registry.read(ctx)
	if err != nil {
		return err
	}
	lock, err := g.registry.lock(ctx, owner, "crashing", session.Lease())
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

// Fence ends the stream of a journal, like a rebuild that goes no further.
func (s *Journals) Fence(ctx context.Context, name string) error {
	j, _ := s.lookup(name).healthy()
	_, fenced, err := j.fence(ctx)
	if err == nil && !fenced {
		return fmt.Errorf("stream of journal %q has no fence", name)
	}
	return err
}

// KnowLost makes a journal believe that its stream has one more message, with one record, and returns the position of
// that record. It is the state of a writer whose stream has lost its last message.
func (s *Journals) KnowLost(name string) uint64 {
	j, _ := s.lookup(name).healthy()
	tail, _ := j.knownTail()
	j.observe(indexEntry{tail.seq + 1, tail.last + 1, tail.last + 1})
	return tail.last + 1
}
