package fairshare

import "context"

type callerKey struct{}

// WithCaller returns a context whose work is done for the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a context, or the zero Caller, which is the server itself.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
