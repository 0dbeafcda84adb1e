package kindstest

import (
	"context"
	"log/slog"
	"testing"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/reconcile"
)

// Run runs a kind's reconciler until stop is called.
func Run(t testing.TB, client versioned.Interface, kind kinds.Reconciled) (stop func()) {
	t.Helper()
	informers := externalversions.NewSharedInformerFactory(client, 0)
	runner, err := kind.Controller(reconcile.Env{
		Client: client, Informers: informers,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	informers.Start(ctx.Done())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := runner.Run(ctx, 2); err != nil && ctx.Err() == nil {
			t.Errorf("reconciler: %v", err)
		}
	}()
	return func() { cancel(); <-done; informers.Shutdown() }
}
