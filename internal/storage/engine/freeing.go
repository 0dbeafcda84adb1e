package engine

import "context"

type freeingKey struct{}

// Freeing marks what is done with a context as making room, such as the record that
// something was deleted. It is taken on the last bytes of a full disk, where
// everything else is ErrDiskFull.
func Freeing(ctx context.Context) context.Context {
	return context.WithValue(ctx, freeingKey{}, true)
}

// Frees says whether a context is marked with Freeing.
func Frees(ctx context.Context) bool {
	frees, _ := ctx.Value(freeingKey{}).(bool)
	return frees
}
