package reconcile

import (
	"context"
	"log/slog"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
)

// Env is what every kind's reconciler works with: a client of the service's own
// API, one set of informers for all of them, and a logger.
type Env struct {
	Client    versioned.Interface
	Informers externalversions.SharedInformerFactory
	Log       *slog.Logger
}

// Runner works on its objects, several at once, until the context ends.
type Runner interface {
	Run(ctx context.Context, workers int) error
}
