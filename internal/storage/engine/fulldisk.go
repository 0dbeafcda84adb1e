package engine

import "context"

type fullDiskKey struct{}

// AllowWhenDiskFull returns a context whose journal appends are accepted on a full disk, where
// others return ErrDiskFull. It is for records that free space, such as a deletion.
func AllowWhenDiskFull(ctx context.Context) context.Context {
	return context.WithValue(ctx, fullDiskKey{}, true)
}

// AllowedWhenDiskFull reports whether the context was made with AllowWhenDiskFull.
func AllowedWhenDiskFull(ctx context.Context) bool {
	allowed, _ := ctx.Value(fullDiskKey{}).(bool)
	return allowed
}
