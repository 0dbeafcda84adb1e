package replicated

import "context"

func (s *Shard) bootstrap(ctx context.Context, f *follower) error { return errBehind }
