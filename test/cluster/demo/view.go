package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// view is what the members say of themselves.
type view struct {
	health map[string]string
	owned  map[string]int // shards
	shards string         // the table of shards
}

// look asks every member how it is, and one that answers who owns what.
func (s *screen) look(ctx context.Context) view {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	v := view{health: map[string]string{}, owned: map[string]int{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, m := range s.group.Members {
		if m.PID() == 0 || m.Paused() {
			continue
		}
		asking.Go(func() {
			health := "does not answer"
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/readyz", http.NoBody)
			if err != nil {
				return
			}
			if response, err := http.DefaultClient.Do(request); err == nil && response.Body.Close() == nil {
				if health = "not ready"; response.StatusCode == http.StatusOK {
					health = "ready"
				}
			}
			mu.Lock()
			defer mu.Unlock()
			v.health[m.Name] = health
		})
	}
	asking.Wait()
	return v
}
