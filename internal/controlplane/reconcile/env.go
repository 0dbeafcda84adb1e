package reconcile

import (
	"context"
	"log/slog"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
)

// Env contains the dependencies of every kind's reconciler: a client of the service's own API, one
// set of informers for all of them, and a logger.
type Env struct {
	Client    versioned.Interface
	Informers externalversions.SharedInformerFactory
	Log       *slog.Logger
}

// Runner reconciles objects with several workers until the context ends.
type Runner interface {
	Run(ctx context.Context, workers int) error
}
