package group

import (
	"context"
	"errors"

	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/storage/engine"
)

// shard is a shard as dataplane wants it.
type shard struct {
	*replicated.Shard
	number int
	closed func()
}

// Health implements sharded.Shard: it tells of what does not pass by itself. A copy
// that does not follow its log for a moment is told by Status.
func (s *shard) Health() error {
	err := s.Shard.Status().Err
	if errors.Is(err, engine.ErrLogLost) || engine.PublicError(err) != nil {
		return err
	}
	return nil
}

// Checkpoint implements sharded.Shard: the copy has everything that was acknowledged
// before the call, whoever owns the shard.
func (s *shard) Checkpoint(ctx context.Context, dir string) error {
	if err := s.Shard.CatchUp(ctx); err != nil {
		return err
	}
	return s.Shard.Checkpoint(ctx, dir)
}

// SetCopies implements dataplane.GroupShard.
func (s *shard) SetCopies(n int) { s.Shard.SetCopies(copiesOf(n)) }

// Close implements sharded.Shard.
func (s *shard) Close() error {
	s.closed()
	return s.Shard.Close()
}

// Status implements dataplane.GroupShard.
func (s *shard) Status() provision.Shard {
	is := s.Shard.Status()
	out := provision.Shard{Number: s.number, Owner: is.Owner.Member, Epoch: is.Owner.Epoch, Log: is.End}
	for _, c := range is.Copies {
		out.Copies = append(out.Copies,
			provision.Copy{Member: c.Member, Live: c.Live, Lag: c.Lag, Lost: c.Lost, Problem: c.Problem})
	}
	if is.Err != nil {
		out.Problem = is.Err.Error()
	}
	return out
}
