package ensemble

import (
	"context"
	"errors"

	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/storage/engine"
)

// shard adapts a replicated shard to dataplane.
type shard struct {
	*replicated.Shard
	number int
	closed func()
}

// Health implements sharded.Shard. It returns only errors that do not resolve automatically.
// Status also reports a copy that temporarily does not follow its log.
func (s *shard) Health() error {
	err := s.Shard.Status().Err
	if errors.Is(err, engine.ErrLogLost) || engine.PublicError(err) != nil {
		return err
	}
	return nil
}

// Checkpoint implements sharded.Shard. The copy has everything that was acknowledged before
// the call, even if another member owns the shard.
func (s *shard) Checkpoint(ctx context.Context, dir string) error {
	if err := s.Shard.CatchUp(ctx); err != nil {
		return err
	}
	return s.Shard.Checkpoint(ctx, dir)
}

// SetCopies implements dataplane.EnsembleShard.
func (s *shard) SetCopies(n int) { s.Shard.SetCopies(copiesOrDefault(n)) }

// Close implements sharded.Shard.
func (s *shard) Close() error {
	s.closed()
	return s.Shard.Close()
}

// Status implements dataplane.EnsembleShard.
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
