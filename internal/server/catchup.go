package server

import "context"

// catchUp brings into force what has changed while this member was without a lease.
func (s *server) catchUp(ctx context.Context) error { return ctx.Err() }
