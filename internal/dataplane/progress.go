package dataplane

import "context"

// Part is a piece of a cluster that comes up by itself.
type Part string

// The parts of a cluster, in the order in which they come up.
const (
	Storage  Part = "storage"  // the engine's store is open
	Metadata Part = "metadata" // the registry has replayed its journal
	Broker   Part = "broker"   // topics and subscriptions are known
	Proxy    Part = "proxy"    // requests find the cluster
)

type progressKey struct{}

// WithProgress asks Provision to tell of each part that comes up. The report is
// made while no other cluster can be opened, so it should be short.
func WithProgress(ctx context.Context, report func(Part)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

func report(ctx context.Context, part Part) {
	if f, ok := ctx.Value(progressKey{}).(func(Part)); ok {
		f(part)
	}
}
