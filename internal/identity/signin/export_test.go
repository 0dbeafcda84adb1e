package signin

import "context"

// Sweep removes ended records at once.
func (s *Service) Sweep(ctx context.Context) error { return s.sweeper.sweep(ctx) }

// EndAll ends all sessions and grants of a user.
func (s *Sessions) EndAll(ctx context.Context, uid string) error { return s.endAll(ctx, uid) }

// Hashed returns how many password hashes were computed.
func (s *Passwords) Hashed() int64 { return s.hasher.hashed.Load() }

// EndOthers ends all sessions of a user except for one.
func (s *Sessions) EndOthers(ctx context.Context, in *Session) error { return s.endOthers(ctx, in) }
