package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/internal/base/retry"
)

// cachesPoll is the interval between two readiness checks of a cache.
const cachesPoll = 10 * time.Millisecond

// cached is a store with a watch cache, from which lists and watches are served. Until the cache is
// filled, the API machinery responds with 429.
type cached interface{ ReadinessCheck() error }

// cachesOf returns the caches of the kinds and of the core resources.
func cachesOf(storages map[string]rest.Storage, coreResources core) []cached {
	caches := []cached{coreResources.organizations, coreResources.events}
	for _, storage := range storages {
		if c, ok := storage.(cached); ok {
			caches = append(caches, c)
		}
	}
	return caches
}

// Warm returns when every list can be served, which takes about ten milliseconds after Start;
// without etcd it waits. /readyz does not return ok before that.
func (s *Server) Warm(ctx context.Context) error { return warm(ctx, s.caches) }

func warm(ctx context.Context, caches []cached) error {
	for _, c := range caches {
		for c.ReadinessCheck() != nil {
			if retry.Sleep(ctx, cachesPoll) != nil {
				return fmt.Errorf("waiting for the caches of the resource API: %w", ctx.Err())
			}
		}
	}
	return nil
}
