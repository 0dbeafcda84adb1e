package resourcestest

import (
	"context"
	"testing"

	"freshet/api/generated/informers/externalversions"
)

// Controller is what every package under controllers makes.
type Controller interface {
	Run(ctx context.Context, workers int) error
}

// Run has a controller and its informers at work until they are stopped.
func Run(t testing.TB, informers externalversions.SharedInformerFactory, c Controller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	informers.Start(ctx.Done())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx, 2); err != nil && ctx.Err() == nil {
			t.Errorf("controller: %v", err)
		}
	}()
	return func() { cancel(); <-done; informers.Shutdown() }
}
