package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/registry/rest"
)

// cachesPoll is how often a cache is asked whether it holds what is stored.
const cachesPoll = 10 * time.Millisecond

// cached is a store with a cache, which lists and watches are served from. While the
// cache does not hold what is stored, the library answers them 429.
type cached interface{ ReadinessCheck() error }

// cachesOf are those of the kinds and of what is served beside them.
func cachesOf(storages map[string]rest.Storage, beside core) []cached {
	caches := []cached{beside.organizations, beside.events}
	for _, storage := range storages {
		if c, ok := storage.(cached); ok {
			caches = append(caches, c)
		}
	}
	return caches
}

// Warm returns when every list can be served, which takes some ten milliseconds after
// Start; without etcd it waits for it. /readyz does not say ok before.
func (s *Server) Warm(ctx context.Context) error { return warm(ctx, s.caches) }

func warm(ctx context.Context, caches []cached) error {
	poll := time.NewTicker(cachesPoll)
	defer poll.Stop()
	for _, c := range caches {
		for c.ReadinessCheck() != nil {
			select {
			case <-poll.C:
			case <-ctx.Done():
				return fmt.Errorf("waiting for the caches of the resource API: %w", ctx.Err())
			}
		}
	}
	return nil
}
