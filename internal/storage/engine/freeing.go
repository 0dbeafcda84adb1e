package engine

import "context"

type freeingKey struct{}

// Freeing returns a context whose journal appends are accepted on a full disk, where
// others return ErrDiskFull. It is for records that free space, such as a deletion.
func Freeing(ctx context.Context) context.Context {
	return context.WithValue(ctx, freeingKey{}, true)
}

// Frees reports whether the context was made with AllowWhenDiskFull.
func Frees(ctx context.Context) bool {
	frees, _ := ctx.Value(freeingKey{}).(bool)
	return frees
}
